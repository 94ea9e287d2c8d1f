#include "bench/attention_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <optional>

#include "attn/selection.h"
#include "attn/tuning_table.h"
#include "base/log.h"
#include "kv/cache_dtype.h"
#include "model/decoder_sizes.h"
#include "model/model_loader.h"
#include "platform/tune.h"
#include "start/model_files.h"

namespace quire::bench {
namespace {

// Peak rates of an H200 by its data sheet: GB/s, and BF16 TFLOP/s.
constexpr double kPeakBandwidth = 4800.0;
constexpr double kPeakTflops = 989.0;

// Returns the shape of the given head counts or, without them, of the model's first KV group. Only
// numbers of the configuration are read, so the weights need not exist. Window, soft cap and sinks
// are left out, because the points of a tuning table do not have them.
Result<AttentionShape> attention_shape(const AttentionShapeOptions& options) {
  AttentionShape shape = {
      .num_heads = options.num_heads,
      .num_kv_heads = options.num_kv_heads,
      .head_dim = options.head_dim,
      .head_dim_v = options.latent_dim > 0 ? options.latent_dim : options.head_dim,
      .is_latent = options.latent_dim > 0};
  std::optional<DType> model_dtype;
  if (options.num_heads == 0) {
    EngineConfig engine = options.engine;
    engine.load_format = "dummy";
    QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(engine));
    const ModelLimits limits = {.max_model_len = files.config.longest_model_len};
    shape = decoder_kv_groups(files.config, limits, DType::kF32).front().decode;
    model_dtype = files.config.dtype;
  }
  const DType query_dtype =
      parse_dtype(options.engine.dtype).value_or(model_dtype.value_or(DType::kBF16));
  return AttentionShape{
      .num_heads = shape.num_heads,
      .num_kv_heads = shape.num_kv_heads,
      .head_dim = shape.head_dim,
      .head_dim_v = shape.head_dim_v,
      .is_latent = shape.is_latent,
      .page_size = options.engine.block_size,
      .q = query_dtype,
      .kv = parse_dtype(options.engine.kv_cache_dtype).value_or(query_dtype),
      .out = query_dtype,
      .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim)),
  };
}

// Returns for example "64 query heads, 8 KV heads, head_dim 128, page 16, bf16 with bf16 KV cache".
// With a latent cache, prompts are measured in the absorbed form, which all backends have; a model
// may use the expanded form (attn/expansion.h), whose products need the model's matrices.
std::string describe(const AttentionShape& shape, bool has_prompts) {
  return fmt::format("{} query heads, {} KV heads, head_dim {}{}, page {}, {} with {} KV cache{}",
                     shape.num_heads, shape.num_kv_heads, shape.head_dim,
                     shape.is_latent ? fmt::format(" ({} latent)", shape.head_dim_v) : "",
                     shape.page_size, dtype_name(shape.q), kv_cache_dtype_name(shape.kv),
                     shape.is_latent && has_prompts ? ", prompts in the absorbed form" : "");
}

Phase phase_of(const AttentionBenchOptions& options) {
  return options.grid == "prefill" ? Phase::kPrefill : Phase::kDecode;
}

BenchGridConfig grid_config(const AttentionBenchOptions& options) {
  BenchGrid grid = BenchGrid::kSeed;
  if (options.grid == "strict") grid = BenchGrid::kStrict;
  if (options.grid == "outlier") grid = BenchGrid::kOutlier;
  if (options.grid == "prefill") grid = BenchGrid::kPrefill;
  return {.grid = grid,
          .num_seqs = options.num_seqs,
          .kv_lens = options.seq_lens,
          .q_lens = options.q_lens,
          .prefix_lens = options.prefix_lens,
          .seed = options.seed};
}

// Without a model or head counts, uses the head counts of vLLM's benchmark.
AttentionShapeOptions with_default_heads(AttentionShapeOptions options) {
  if (options.num_heads == 0 && options.engine.model.empty()) {
    options.num_heads = 64;
    options.num_kv_heads = 8;
    options.head_dim = 128;
  }
  return options;
}

// The attention uses that the grid measures: one per decode query length, or prefill.
std::vector<AttentionUse> uses_of(const AttentionBenchOptions& options) {
  if (phase_of(options) == Phase::kPrefill) return {{.phase = Phase::kPrefill}};
  std::vector<AttentionUse> uses;
  for (const int q_len : options.q_lens) {
    uses.push_back({.phase = Phase::kDecode, .q_len = q_len, .in_graph = true});
  }
  return uses;
}

// The named backends, or all that support at least one of the uses. If a named backend supports
// none of them, returns its error for the first use.
Result<std::vector<AttentionBackend*>> pick_backends(const DeviceContext& context,
                                                     const AttentionShape& shape,
                                                     std::span<const AttentionUse> uses,
                                                     const std::vector<std::string>& names) {
  const BackendSet& set = context.attention();
  const auto supports_any = [&](const AttentionBackend& backend) {
    return std::ranges::any_of(uses, [&](const AttentionUse& use) {
      return backend.supports(shape, use, context.device()).ok();
    });
  };
  for (const std::string& name : names) {
    const auto found = std::ranges::find(set.all(), name, &AttentionBackend::name);
    if (found != set.all().end() && supports_any(**found)) continue;
    return set.select(shape, uses[0], context.device(), {.any = name, .any_option = "`backends`"})
        .status();
  }
  std::vector<AttentionBackend*> backends;
  for (const auto& backend : set.all()) {
    const bool is_named = names.empty() || std::ranges::find(names, backend->name()) != names.end();
    if (is_named && supports_any(*backend)) backends.push_back(backend.get());
  }
  return backends;
}

// The selector of `auto`: by the table at `path` or, if empty, the built-in one.
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
    return selector.decode(workload_key(workload))->name();
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

std::string point_name(const AttentionWorkload& workload) {
  return fmt::format("{} of {} requests x {} query tokens, {} contexts of {}",
                     phase_name(workload.phase), workload.num_reqs(), workload.q_len,
                     lengths_name(workload.ragged), workload.max_kv_len);
}

void log_failures(std::string_view module, const AttentionWorkload& workload,
                  const MeasuredWorkload& measured) {
  for (const AttentionTimes& times : measured.times) {
    if (times.status.ok()) continue;
    log_warning("[{}] {} at {}: {}", module, times.backend, point_name(workload),
                times.status.message());
  }
}

Status measure_rows(const AttentionBenchOptions& options, DeviceContext& context,
                    const AttentionShape& shape, const Hooks& hooks, AttentionReport& report) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<AttentionBackend*> backends,
                         pick_backends(context, shape, uses_of(options), options.backends));
  for (const AttentionBackend* backend : backends) report.backends.emplace_back(backend->name());
  QUIRE_ASSIGN_OR_RETURN(const AttentionSelector selector,
                         make_selector(context, shape, options.tuning_table, options.q_lens));
  const MeasureConfig config{.shape = shape,
                             .workloads = bench_grid(grid_config(options)),
                             .num_warmups = options.num_iters_warmup,
                             .num_trials = options.num_iters};
  return quire::measure_attention(
      context, backends, config, [&](size_t i, const MeasuredWorkload& measured) {
        const AttentionWorkload& workload = config.workloads[i];
        log_failures("bench", workload, measured);
        report.rows.push_back(make_row(shape, workload, measured, report.backends));
        report.rows.back().auto_backend = chosen_by(selector, workload);
        hooks.on_progress(i + 1, config.workloads.size(), [&] { return point_name(workload); });
        return !hooks.interrupted();
      });
}

std::vector<std::string_view> measured_backends(const TuningTable& table) {
  std::vector<std::string_view> names;
  for (const TuningTable::MeasuredPoint& measured : table.points()) {
    for (const TuningTable::Time& time : measured.times) {
      if (std::ranges::find(names, time.backend) == names.end()) names.push_back(time.backend);
    }
  }
  return names;
}

Result<std::vector<TuningRow>> measure_points(DeviceContext& context, const MeasureConfig& config,
                                              const Hooks& hooks) {
  std::vector<AttentionBackend*> backends;
  for (const auto& backend : context.attention().all()) backends.push_back(backend.get());
  std::vector<TuningRow> rows;
  size_t num_repeating = 0;
  QUIRE_RETURN_IF_ERROR(quire::measure_attention(
      context, backends, config, [&](size_t i, const MeasuredWorkload& measured) {
        const AttentionWorkload& workload = config.workloads[i];
        num_repeating += measured.repeats_pages ? 1 : 0;
        log_failures("tune", workload, measured);
        std::ranges::move(tuning_rows(config.shape, workload, measured), std::back_inserter(rows));
        hooks.on_progress(i + 1, config.workloads.size(), [&] { return point_name(workload); });
        return !hooks.interrupted();
      }));
  if (num_repeating > 0) {
    log_info("[tune] {} of {} batches reuse pages, because distinct pages do not fit in memory",
             num_repeating, config.workloads.size());
  }
  return rows;
}

}  // namespace

Result<AttentionReport> measure_attention(const AttentionBenchOptions& options,
                                          const Hooks& hooks) {
  const Status gpu = cuda_status();
  if (!gpu.ok()) {
    return unavailable(
        fmt::format("[bench] attention is measured on a GPU only; {}", gpu.message()));
  }
  QUIRE_ASSIGN_OR_RETURN(const AttentionShape shape,
                         attention_shape(with_default_heads(options.shape)));
  QUIRE_ASSIGN_OR_RETURN(const auto platform, make_cuda_platform({.activation_dtype = shape.q}));
  DeviceContext& context = *platform->contexts().front();
  AttentionReport report{.device = context.device().name,
                         .shape = describe(shape, phase_of(options) == Phase::kPrefill),
                         .grid = options.grid,
                         .phase = phase_of(options)};
  const bool decodes = report.phase == Phase::kDecode;
  const double peak = options.peak > 0.0 ? options.peak : decodes ? kPeakBandwidth : kPeakTflops;
  report.peak = peak * (decodes ? 1e3 : 1e6);  // bytes or operations per µs
  QUIRE_RETURN_IF_ERROR(measure_rows(options, context, shape, hooks, report));
  return report;
}

Result<TuneResult> tune_attention(const TuneOptions& options, const Hooks& hooks) {
  const Status gpu = cuda_status();
  if (!gpu.ok()) {
    return unavailable(
        fmt::format("[tune] attention is tuned on a GPU only; {}; leave out --device cuda and the "
                    "head flags to "
                    "tune a CPU's threads",
                    gpu.message()));
  }
  MeasureConfig config{.workloads = tuning_grid(options.quick, options.q_lens),
                       .sample_long_calls_less = true};
  QUIRE_ASSIGN_OR_RETURN(config.shape, attention_shape(options.shape));
  QUIRE_ASSIGN_OR_RETURN(const auto platform,
                         make_cuda_platform({.activation_dtype = config.shape.q}));
  DeviceContext& context = *platform->contexts().front();
  // Fails before the measurement if no backend serves a phase.
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    QUIRE_RETURN_IF_ERROR(
        context.attention().select(config.shape, {.phase = phase}, context.device(), {}).status());
  }
  const std::string shape =
      describe(config.shape, std::ranges::any_of(config.workloads, [](const auto& workload) {
                 return workload.phase == Phase::kPrefill;
               }));
  TuneResult result{.title = fmt::format("{}: {}", context.device().name, shape), .rows = {}};
  log_info("[tune] {}", shape);
  QUIRE_ASSIGN_OR_RETURN(result.rows, measure_points(context, config, hooks));
  if (hooks.interrupted()) return cancelled("[tune] interrupted; no table was written");
  return result;
}

std::string to_table(const TuneResult& result) {
  const TuningTable table(result.rows);
  const std::vector<std::string_view> names = measured_backends(table);
  std::string text = fmt::format("{}; microseconds per call\n", result.title);
  text +=
      fmt::format("{:<8} {:>6} {:>7} {:>7} {:<7}", "phase", "seqs", "q_len", "kv_len", "lengths");
  for (const std::string_view name : names) text += fmt::format(" {:>11}", name);
  text += "  fastest\n";
  for (const TuningTable::MeasuredPoint& measured : table.points()) {
    const TuningPoint& point = measured.point;
    text += fmt::format("{:<8} {:>6} {:>7} {:>7} {:<7}", phase_name(point.phase), point.num_reqs,
                        point.q_len, point.kv_len, lengths_name(point.ragged));
    for (const std::string_view name : names) {
      const TuningTable::Time* time = measured.find(name);
      text += fmt::format(" {:>11}", time == nullptr ? "-" : fmt::format("{:.1f}", time->us));
    }
    text += fmt::format("  {}\n", names[table.best(point, names).candidate]);
  }
  return text;
}

std::string to_csv(const TuneResult& result) {
  return fmt::format("# {}\n{}", result.title, to_csv(result.rows));
}

}  // namespace quire::bench
