#include "platform/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "attn/tuning_table.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/output.h"
#include "engine/model_files.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

struct Options {
  EngineConfig engine;  // --model and the flags of a shape
  int num_heads = 0;    // 0: the model's
  int num_kv_heads = 0;
  int head_dim = 0;
  bool quick = false;
  std::string output;
};

Status check(const Options& options) {
  const bool any = options.num_heads + options.num_kv_heads + options.head_dim > 0;
  const bool all = options.num_heads > 0 && options.num_kv_heads > 0 && options.head_dim > 0;
  if (any && !all) {
    return invalid_argument("expected --num-heads, --num-kv-heads and --head-dim together");
  }
  if (any && !options.engine.model.empty()) {
    return invalid_argument("expected --model or --num-heads, not both");
  }
  return {};
}

// Attention on a GPU computes in 16 bits.
DType query_type(const std::string& name, std::optional<DType> of_model) {
  const DType type = parse_dtype(name).value_or(of_model.value_or(DType::kBF16));
  return type == DType::kF16 ? type : DType::kBF16;
}

Result<AttentionShape> shape_of(const Options& options) {
  AttentionShape shape = {.num_heads = options.num_heads,
                          .num_kv_heads = options.num_kv_heads,
                          .head_dim = options.head_dim};
  std::optional<DType> of_model;
  if (options.num_heads == 0) {
    QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(options.engine));
    shape.num_heads = files.config.num_heads;
    shape.num_kv_heads = files.config.num_kv_heads;
    shape.head_dim = files.config.head_dim;
    of_model = files.config.dtype;
  }
  shape.head_dim_v = shape.head_dim;
  shape.page_size = options.engine.block_size;
  shape.q = shape.out = query_type(options.engine.dtype, of_model);
  shape.kv = parse_dtype(options.engine.kv_cache_dtype).value_or(shape.q);
  shape.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  return shape;
}

std::string describe(const AttentionShape& shape) {
  return fmt::format("{} query heads, {} KV heads, head_dim {}, page {}, {} with {} KV cache",
                     shape.num_heads, shape.num_kv_heads, shape.head_dim, shape.page_size,
                     dtype_name(shape.q), dtype_name(shape.kv));
}

std::vector<std::string_view> measured_backends(const TuningTable& table) {
  std::vector<std::string_view> names;
  for (const TuningTable::Cell& cell : table.cells()) {
    for (const TuningTable::Time& time : cell.times) {
      if (std::ranges::find(names, time.backend) == names.end()) names.push_back(time.backend);
    }
  }
  return names;
}

void print_table(const TuningTable& table) {
  const std::vector<std::string_view> names = measured_backends(table);
  print_stdout("{:<8} {:>6} {:>7} {:>7}", "phase", "batch", "q_len", "kv_len");
  for (const std::string_view name : names) print_stdout(" {:>11}", name);
  print_stdout("  fastest\n");
  for (const TuningTable::Cell& cell : table.cells()) {
    const TuningPoint& point = cell.point;
    print_stdout("{:<8} {:>6} {:>7} {:>7}", phase_name(point.phase), point.num_reqs, point.q_len,
                 point.kv_len);
    for (const std::string_view name : names) {
      const TuningTable::Time* time = cell.find(name);
      print_stdout(" {:>11}", time == nullptr ? "-" : fmt::format("{:.1f}", time->us));
    }
    print_stdout("  {}\n", names[table.best(point, names).candidate]);
  }
}

Result<TuneResult> measure(const TuneConfig& config) {
  log_info("[tune] {}", describe(config.shape));
  return tune_attention(
      config, [](const TuningPoint& point, std::string_view backend, const Result<double>& us) {
        if (us.ok()) return;
        log_warning("[tune] {} {} at {} x {} of {}: {}", backend, phase_name(point.phase),
                    point.num_reqs, point.q_len, point.kv_len, us.status().message());
      });
}

Result<int> run(const Options& options) {
  const Status gpu = cuda_status();
  if (!gpu.ok()) {
    return unavailable(fmt::format(
        "[tune] there is nothing to tune: a CPU takes the first backend that serves; {}",
        gpu.message()));
  }
  TuneConfig config{.shape = {}, .quick = options.quick};
  QUIRE_ASSIGN_OR_RETURN(config.shape, shape_of(options));
  QUIRE_ASSIGN_OR_RETURN(const TuneResult result, measure(config));
  print_stdout("{}: {}; microseconds a call\n", result.device, describe(config.shape));
  print_table(TuningTable(result.rows));
  if (!options.output.empty()) {
    const std::string head =
        fmt::format("# {}: quire tune, {}\n", result.device, describe(config.shape));
    QUIRE_RETURN_IF_ERROR(write_output_file(options.output, head + to_csv(result.rows)));
  }
  return kExitOk;
}

}  // namespace

Command tune_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "tune";
  command.summary = "Measure a GPU's attention backends, for --tuning-table";
  command.example =
      "  quire tune --model ~/models/llama --output tuned.csv\n"
      "  quire tune --num-heads 32 --num-kv-heads 8 --head-dim 128 --quick";
  FlagSet& flags = command.flags;
  flags.begin_group("Attention");
  add_attention_flags(flags, &options->engine);
  flags.number("--num-heads", &options->num_heads, {.min = 0, .max = 4096},
               "Query heads, instead of a model's");
  flags.number("--num-kv-heads", &options->num_kv_heads, {.min = 0, .max = 4096}, "KV heads");
  flags.number("--head-dim", &options->head_dim, {.min = 0, .max = 4096}, "Size of a head");
  flags.begin_group("Measurement");
  flags.toggle("--quick", &options->quick, "Measure a few points only");
  flags.output_file("--output", &options->output, "Write the table to this file");
  command.check = [options] { return check(*options); };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
