#include "platform/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "attn/tuning_table.h"
#include "base/log.h"
#include "cli/attention_shape.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

struct Options {
  AttentionShapeOptions shape;
  bool quick = false;
  std::vector<int> q_lens = {std::begin(kTuningQLens), std::end(kTuningQLens)};
  std::string output;
};

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
  print_stdout("{:<8} {:>6} {:>7} {:>7} {:<7}", "phase", "batch", "q_len", "kv_len", "lengths");
  for (const std::string_view name : names) print_stdout(" {:>11}", name);
  print_stdout("  fastest\n");
  for (const TuningTable::Cell& cell : table.cells()) {
    const TuningPoint& point = cell.point;
    print_stdout("{:<8} {:>6} {:>7} {:>7} {:<7}", phase_name(point.phase), point.num_reqs,
                 point.q_len, point.kv_len, lengths_name(point.ragged));
    for (const std::string_view name : names) {
      const TuningTable::Time* time = cell.find(name);
      print_stdout(" {:>11}", time == nullptr ? "-" : fmt::format("{:.1f}", time->us));
    }
    print_stdout("  {}\n", names[table.best(point, names).candidate]);
  }
}

std::vector<AttentionBackend*> all_backends(const DeviceContext& context) {
  std::vector<AttentionBackend*> backends;
  for (const auto& backend : context.attention().all()) backends.push_back(backend.get());
  return backends;
}

std::string point_name(const AttentionWorkload& workload) {
  return fmt::format("{} {} x {} of {} {}", phase_name(workload.phase), workload.num_reqs(),
                     workload.q_len, lengths_name(workload.ragged), workload.max_kv_len);
}

Result<std::vector<TuningRow>> measure(DeviceContext& context, const MeasureConfig& config) {
  const std::vector<AttentionBackend*> backends = all_backends(context);
  std::vector<TuningRow> rows;
  size_t num_repeating = 0;
  Progress progress("tune", config.workloads.size());
  QUIRE_RETURN_IF_ERROR(
      measure_attention(context, backends, config, [&](size_t i, const MeasuredWorkload& measured) {
        const AttentionWorkload& workload = config.workloads[i];
        num_repeating += measured.repeats_pages ? 1 : 0;
        for (const AttentionTimes& times : measured.times) {
          if (times.status.ok()) {
            rows.push_back(
                {tuning_point(config.shape, workload), std::string(times.backend), times.graph_us});
          } else {
            log_warning("[tune] {} at {}: {}", times.backend, point_name(workload),
                        times.status.message());
          }
        }
        progress.update(i + 1, point_name(workload));
        return !CancelScope::interrupted();
      }));
  if (num_repeating > 0) {
    log_info("[tune] the memory does not hold the pages of {} of {} batches: theirs repeat",
             num_repeating, config.workloads.size());
  }
  return rows;
}

Result<int> run(const Options& options) {
  const Status gpu = cuda_status();
  if (!gpu.ok()) {
    return unavailable(fmt::format(
        "[tune] there is nothing to tune: a CPU takes the first backend that serves; {}",
        gpu.message()));
  }
  MeasureConfig config{.workloads = tuning_grid(options.quick, options.q_lens),
                       .spare_long_calls = true};
  QUIRE_ASSIGN_OR_RETURN(config.shape, attention_shape(options.shape));
  QUIRE_ASSIGN_OR_RETURN(const auto platform,
                         make_cuda_platform({.activation_dtype = config.shape.q}));
  DeviceContext& context = *platform->contexts().front();
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    QUIRE_RETURN_IF_ERROR(
        context.attention().select(config.shape, {.phase = phase}, context.device(), {}).status());
  }
  log_info("[tune] {}", describe(config.shape));
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(const std::vector<TuningRow> rows, measure(context, config));
  if (CancelScope::interrupted()) return CancelScope::exit_code();
  const std::string head = fmt::format("{}: {}", context.device().name, describe(config.shape));
  print_stdout("{}; microseconds a call\n", head);
  print_table(TuningTable(rows));
  if (!options.output.empty()) {
    QUIRE_RETURN_IF_ERROR(
        write_output_file(options.output, fmt::format("# {}\n{}", head, to_csv(rows))));
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
  add_attention_shape_flags(flags, &options->shape);
  flags.begin_group("Measurement");
  flags.toggle("--quick", &options->quick, "Measure a few points only");
  add_sizes(flags, "--q-len", &options->q_lens, 64,
            "Query tokens of each sequence in decode; without 1, prompts are not measured",
            fmt::format("{}", fmt::join(kTuningQLens, ",")));
  flags.output_file("--output", &options->output, "Write the table to this file");
  command.check = [options] { return check_attention_shape(options->shape); };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
