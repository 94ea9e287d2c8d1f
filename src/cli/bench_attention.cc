#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "attn/selection.h"
#include "attn/tuning_table.h"
#include "cli/attention_shape.h"
#include "cli/bench_attention_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "platform/tune.h"

namespace quire::cli {
namespace {

// Peak rates of an H200 by its data sheet: GB/s, and BF16 TFLOP/s.
constexpr double kPeakBandwidth = 4800.0;
constexpr double kPeakTflops = 989.0;

struct Options {
  AttentionShapeOptions shape;
  std::string grid = "seed";
  std::vector<int> num_seqs;
  std::vector<int> seq_lens;
  std::vector<int> q_lens = {1};
  std::vector<std::string> backends;
  std::string tuning_table;
  int num_iters_warmup = 10;
  int num_iters = 20;
  double peak = 0.0;
  uint64_t seed = kWorkloadSeed;
  std::string json;
  std::string csv;
};

Phase phase_of(const Options& options) {
  return options.grid == "prefill" ? Phase::kPrefill : Phase::kDecode;
}

BenchGridConfig grid_config(const Options& options) {
  BenchGrid grid = BenchGrid::kSeed;
  if (options.grid == "strict") grid = BenchGrid::kStrict;
  if (options.grid == "prefill") grid = BenchGrid::kPrefill;
  return {.grid = grid,
          .num_seqs = options.num_seqs,
          .kv_lens = options.seq_lens,
          .q_lens = options.q_lens,
          .seed = options.seed};
}

// Without a model or head flags, uses the head counts of vLLM's benchmark.
AttentionShapeOptions with_default_heads(AttentionShapeOptions options) {
  if (options.num_heads == 0 && options.engine.model.empty()) {
    options.num_heads = 64;
    options.num_kv_heads = 8;
    options.head_dim = 128;
  }
  return options;
}

Status check(const Options& options) {
  QUIRE_RETURN_IF_ERROR(check_attention_shape(options.shape));
  if (options.grid == "prefill" && options.q_lens != std::vector{1}) {
    return invalid_argument("--q-len is of decode; a prompt has all its tokens");
  }
  for (const int seq_len : options.seq_lens) {
    if (seq_len >= options.q_lens.back()) continue;
    return invalid_argument(
        fmt::format("--seq-lens: got {}, expected at least the {} tokens of --q-len", seq_len,
                    options.q_lens.back()));
  }
  return {};
}

// The attention uses that the grid measures: one per decode query length, or prefill.
std::vector<AttentionUse> uses_of(const Options& options) {
  if (phase_of(options) == Phase::kPrefill) return {{.phase = Phase::kPrefill}};
  std::vector<AttentionUse> uses;
  for (const int q_len : options.q_lens) {
    uses.push_back({.phase = Phase::kDecode, .q_len = q_len, .in_graph = true});
  }
  return uses;
}

// The named backends, or all that support the shape. A backend that serves none of the uses is an
// error, which is its first refusal.
Result<std::vector<AttentionBackend*>> pick_backends(const DeviceContext& context,
                                                     const AttentionShape& shape,
                                                     std::span<const AttentionUse> uses,
                                                     const std::vector<std::string>& names) {
  const BackendSet& set = context.attention();
  const auto serves_any = [&](const AttentionBackend& backend) {
    return std::ranges::any_of(uses, [&](const AttentionUse& use) {
      return backend.supports(shape, use, context.device()).ok();
    });
  };
  for (const std::string& name : names) {
    const auto found = std::ranges::find(set.all(), name, &AttentionBackend::name);
    if (found != set.all().end() && serves_any(**found)) continue;
    return set.select(shape, uses[0], context.device(), {.name = name, .option = "--backends"})
        .status();
  }
  std::vector<AttentionBackend*> backends;
  for (const auto& backend : set.all()) {
    const bool is_named = names.empty() || std::ranges::find(names, backend->name()) != names.end();
    if (is_named && serves_any(*backend)) backends.push_back(backend.get());
  }
  return backends;
}

Result<AttentionSelector> make_selector(const DeviceContext& context, const AttentionShape& shape,
                                        const std::string& path, std::span<const int> q_lens) {
  TuningTable table = builtin_table(context.device());
  if (!path.empty()) {
    QUIRE_ASSIGN_OR_RETURN(table, TuningTable::read(path));
  }
  return AttentionSelector::create(context.attention(), {shape, shape}, context.device(), {},
                                   std::make_shared<const TuningTable>(std::move(table)), q_lens);
}

std::string_view chosen_by(const AttentionSelector& selector, const AttentionWorkload& workload) {
  if (workload.phase == Phase::kDecode) {
    return selector.decode(decode_key(workload))->name();
  }
  return selector
      .prefill(workload.num_reqs(), workload.num_reqs() * workload.q_len, workload.max_kv_len)
      ->name();
}

AttentionRow make_row(const AttentionShape& shape, const AttentionWorkload& workload,
                      const MeasuredWorkload& measured, const std::vector<std::string>& backends) {
  AttentionRow row{.num_seqs = workload.num_reqs(),
                   .max_kv_len = workload.max_kv_len,
                   .q_len = workload.q_len,
                   .work = workload.phase == Phase::kDecode ? num_kv_bytes(shape, workload)
                                                            : num_operations(shape, workload),
                   .repeats_pages = measured.repeats_pages};
  row.cells.resize(backends.size());
  for (const AttentionTimes& times : measured.times) {
    const auto column = std::ranges::find(backends, times.backend) - backends.begin();
    if (!times.status.ok()) continue;
    row.cells[static_cast<size_t>(column)] = {.graph_us = times.graph_us,
                                              .event_us = mean(times.event_us),
                                              .event_std_us = standard_deviation(times.event_us)};
  }
  return row;
}

void warn_of_failures(const AttentionWorkload& workload, const MeasuredWorkload& measured) {
  for (const AttentionTimes& times : measured.times) {
    if (times.status.ok()) continue;
    print_stderr("quire bench attention: {} at {} x {} of {}: {}\n", times.backend,
                 workload.num_reqs(), workload.q_len, workload.max_kv_len,
                 one_line(times.status.message()));
  }
}

Status measure(const Options& options, DeviceContext& context, const AttentionShape& shape,
               AttentionReport& report) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<AttentionBackend*> backends,
                         pick_backends(context, shape, uses_of(options), options.backends));
  for (const AttentionBackend* backend : backends) report.backends.emplace_back(backend->name());
  QUIRE_ASSIGN_OR_RETURN(const AttentionSelector selector,
                         make_selector(context, shape, options.tuning_table, options.q_lens));
  const MeasureConfig config{.shape = shape,
                             .workloads = bench_grid(grid_config(options)),
                             .num_warmups = options.num_iters_warmup,
                             .num_trials = options.num_iters};
  Progress progress("attention", config.workloads.size());
  return measure_attention(
      context, backends, config, [&](size_t i, const MeasuredWorkload& measured) {
        const AttentionWorkload& workload = config.workloads[i];
        warn_of_failures(workload, measured);
        report.rows.push_back(make_row(shape, workload, measured, report.backends));
        report.rows.back().auto_backend = chosen_by(selector, workload);
        progress.update(i + 1, fmt::format("{} x {}", workload.num_reqs(), workload.max_kv_len));
        return !CancelScope::interrupted();
      });
}

Result<int> run(const Options& options) {
  const Status gpu = cuda_status();
  if (!gpu.ok()) {
    return unavailable(
        fmt::format("[bench] attention is measured on a GPU alone; {}", gpu.message()));
  }
  QUIRE_ASSIGN_OR_RETURN(const AttentionShape shape,
                         attention_shape(with_default_heads(options.shape)));
  QUIRE_ASSIGN_OR_RETURN(const auto platform, make_cuda_platform({.activation_dtype = shape.q}));
  DeviceContext& context = *platform->contexts().front();
  AttentionReport report{.device = context.device().name,
                         .shape = describe(shape),
                         .grid = options.grid,
                         .phase = phase_of(options)};
  const bool decodes = report.phase == Phase::kDecode;
  const double peak = options.peak > 0.0 ? options.peak : decodes ? kPeakBandwidth : kPeakTflops;
  report.peak = peak * (decodes ? 1e3 : 1e6);
  const CancelScope scope;
  QUIRE_RETURN_IF_ERROR(measure(options, context, shape, report));
  append_stdout(to_table(report));
  if (!options.csv.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.csv, to_csv(report)));
  }
  if (!options.json.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.json, to_json(report)));
  }
  return CancelScope::interrupted() ? CancelScope::exit_code() : kExitOk;
}

void add_backends(FlagSet& flags, std::vector<std::string>* target) {
  std::vector<std::string> known;
  for (const BackendName& backend : backend_names()) {
    if (backend.device == DeviceKind::kCuda) known.emplace_back(backend.name);
  }
  flags.add({.name = "--backends",
             .value_name = "NAME,NAME",
             .help = fmt::format("Which to measure, of {}", fmt::join(known, ", ")),
             .default_text = "all that support the shape",
             .set = [target, known](std::string_view value) -> Status {
               std::vector<std::string> names;
               for (size_t begin = 0; begin <= value.size();) {
                 const size_t end = std::min(value.find(',', begin), value.size());
                 names.emplace_back(value.substr(begin, end - begin));
                 if (std::ranges::find(known, names.back()) == known.end()) {
                   return unexpected(names.back(),
                                     fmt::format("one of {}", fmt::join(known, ", ")));
                 }
                 begin = end + 1;
               }
               *target = std::move(names);
               return {};
             }});
}

}  // namespace

Command bench_attention_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "attention";
  command.summary = "Time a GPU's attention backends side by side";
  command.example =
      "  quire bench attention --grid strict --csv strict.csv\n"
      "  quire bench attention --num-heads 32 --num-kv-heads 8 --head-dim 128 \\\n"
      "      --num-seqs 1,64 --seq-lens 4096 --backends native,xqa";
  FlagSet& flags = command.flags;
  add_attention_shape_flags(flags, &options->shape);
  flags.begin_group("Workload");
  flags.choice("--grid", {"seed", "strict", "prefill"}, &options->grid,
               "seed: lengths uniform in [1, N], pages drawn from 16,000; strict: all of length N, "
               "distinct pages; prefill: whole prompts");
  add_sizes(flags, "--num-seqs", &options->num_seqs, 4096, "Sequences in a batch", "the grid's");
  add_sizes(flags, "--seq-lens", &options->seq_lens, 1 << 20, "Lengths, the longest of a batch",
            "the grid's");
  add_sizes(flags, "--q-len", &options->q_lens, 64, "Query tokens of each sequence in decode", "1");
  flags.seed("--seed", &options->seed, "Draws the lengths");
  flags.begin_group("Measurement");
  add_backends(flags, &options->backends);
  flags.file("--tuning-table", &options->tuning_table,
             "What auto chooses by, of quire tune; without it, the built-in table");
  flags.number("--num-iters-warmup", &options->num_iters_warmup, {.min = 0, .max = 10'000},
               "Calls by the host before the measured ones");
  flags.number("--num-iters", &options->num_iters, {.min = 1, .max = 10'000},
               "Measured calls by the host");
  flags.number("--peak", &options->peak, {.min = 0},
               "GB/s, of prefill TFLOP/s, that shares refer to; 0: an H200's 4800 and 989");
  flags.output_file("--json", &options->json, "Write the results to this file");
  flags.output_file("--csv", &options->csv,
                    "Write the results to this file as CSV, for tools/plot_attention.py");
  command.check = [options] { return check(*options); };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
