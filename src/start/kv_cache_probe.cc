#include "start/kv_cache_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "base/wall_timer.h"
#include "model/weights.h"
#include "platform/runner.h"
#include "sample/sampling_fields.h"
#include "sched/policy.h"
#include "sched/scheduler.h"
#include "start/single_sequence.h"

namespace quire {
namespace {

// Trained models predict ordinary English better than chance. The text occurs twice, so that the
// predictions of the second half depend on attention to the first.
constexpr std::string_view kProbeText =
    "The cache holds the keys and values of every token before the current one. "
    "A small error in each of them is harmless, but a wrong scale makes all of them useless. "
    "The cache holds the keys and values of every token before the current one. "
    "A small error in each of them is harmless, but a wrong scale makes all of them useless.";

// The logits rows that the probe's runner computes at once.
constexpr int kMaxLogitRows = 32;

RunnerSizes probe_sizes(const EnginePlan& plan, int num_tokens) {
  RunnerSizes sizes = plan.sizes;
  ModelLimits& limits = sizes.limits;
  limits.max_num_tokens = std::min(limits.max_num_tokens, num_tokens);
  limits.max_num_logit_rows = std::min(limits.max_num_logit_rows, kMaxLogitRows);
  limits.max_model_len = num_tokens + 1;
  limits.num_drafts = 0;
  limits.tapped_layers = {};
  sizes.max_num_seqs = 1;
  sizes.max_num_rule_seqs = 1;
  sizes.decode_q_lens = {1};
  sizes.enforce_eager = true;
  sizes.num_draft_layers = 0;
  sizes.draft_q_len = 1;
  return sizes;
}

SchedulerConfig probe_scheduler(const RunnerSizes& sizes, const StateGroup& states,
                                std::span<const int> num_blocks) {
  SchedulerConfig config = {.max_num_seqs = 1,
                            .max_num_rule_seqs = 1,
                            .max_num_batched_tokens = sizes.limits.max_num_tokens,
                            .max_model_len = sizes.limits.max_model_len,
                            .block_size = sizes.limits.page_size,
                            .tables = {},
                            .enable_prefix_caching = false};
  for (size_t t = 0; t < num_blocks.size(); ++t) {
    const bool holds_states = !states.layers.empty() && static_cast<int>(t) == states.table;
    config.tables.push_back({num_blocks[t], sizes.windows[t], holds_states});
  }
  return config;
}

// The most likely tokens are reported for every position.
SamplingParams probe_sampling() {
  SamplingParams params;
  params.logprobs = kMaxLogprobs;
  params.prompt_logprobs = kMaxLogprobs;
  return params;
}

// A model on its device, with the probe.
struct Probe {
  DeviceContext& context;
  Model& model;
  std::vector<int32_t> token_ids;
  RunnerSizes sizes;
  size_t engine_workspace_bytes = 0;  // the workspace that the engine allocates later
};

// Returns the number of blocks of each table of the probe's cache: one more than the sequence has,
// because block 0 is the padding page.
int num_probe_blocks(const Probe& probe) {
  return num_blocks_for(probe.sizes.limits.max_model_len, probe.sizes.limits.page_size) + 1;
}

using ReadCache = std::function<Status(const KvCache& cache)>;

// Runs the probe over a KV cache of its own with the attention of `setup`. Returns the most likely
// tokens after each token of the probe. Calls read_cache, if it is set, once the cache has all keys
// and values.
Result<std::vector<PositionLogprobs>> run_probe(const Probe& probe, const AttentionSetup& setup,
                                                const ReadCache& read_cache = {}) {
  const std::vector<int> num_blocks(probe.sizes.windows.size(), num_probe_blocks(probe));
  QUIRE_ASSIGN_OR_RETURN(const KvCache cache, KvCache::allocate(setup.kv_groups, setup.states,
                                                                num_blocks, probe.context.ops()));
  // The context never frees a workspace, so a smaller one would stay in memory in addition to the
  // engine's.
  QUIRE_ASSIGN_OR_RETURN(
      const std::span<std::byte> workspace,
      probe.context.workspace(std::max(setup.workspace_bytes, probe.engine_workspace_bytes)));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Runner> runner,
                         probe.context.make_runner({.instance = {.model = &probe.model,
                                                                 .kv_cache = &cache,
                                                                 .attention = setup.selectors,
                                                                 .plans = setup.plans},
                                                    .sizes = probe.sizes,
                                                    .workspace = workspace}));
  QUIRE_ASSIGN_OR_RETURN(
      SpanResult result,
      run_sequence(*runner, probe_scheduler(probe.sizes, setup.states, num_blocks), probe.token_ids,
                   probe_sampling()));
  QUIRE_RETURN_IF_ERROR(result.error);
  if (read_cache) QUIRE_RETURN_IF_ERROR(read_cache(cache));
  std::vector<PositionLogprobs> positions = std::move(result.prompt_logprobs);
  QUIRE_CHECK(!positions.empty() && !result.tokens.empty(),
              "[engine] the probe of the KV cache has no log probabilities");
  positions.erase(positions.begin());  // nothing predicts the first token
  positions.push_back(std::move(result.tokens.front().logprobs));
  return positions;
}

// Returns the attention of the engine's KV groups over a cache in the type of the activations. It
// ignores the configured backend, which may not support that type.
Result<AttentionSetup> unquantized_attention(const Probe& probe, const AttentionSetup& configured) {
  const Device& device = probe.context.device();
  const PlanLimits largest = {.use = {},
                              .max_num_reqs = 1,
                              .max_num_tokens = probe.sizes.limits.max_num_tokens,
                              .max_kv_len = probe.sizes.limits.max_kv_len()};
  AttentionSetup setup;
  setup.kv_groups = configured.kv_groups;
  setup.states = configured.states;
  for (KvGroup& group : setup.kv_groups) {
    const DType dtype = probe.context.ops().activation_dtype();
    group.layout.dtype = group.decode.kv = group.prefill.kv = dtype;
    QUIRE_ASSIGN_OR_RETURN(
        AttentionSelector selector,
        AttentionSelector::create(probe.context.attention(), {group.decode, group.prefill}, device,
                                  {}, std::make_shared<TuningTable>(builtin_table(device)),
                                  probe.sizes.decode_q_lens));
    QUIRE_ASSIGN_OR_RETURN(AttentionPlans plans, AttentionPlans::make(selector, largest, {}));
    setup.workspace_bytes = std::max(setup.workspace_bytes, plans.workspace_bytes());
    setup.selectors.push_back(std::move(selector));
    setup.plans.push_back(std::move(plans));
  }
  return setup;
}

// The name of a quantized cache in messages: "FP8" or "int8".
std::string_view cache_name(const EnginePlan& plan) {
  return plan.sizes.limits.kv_dtype == DType::kI8 ? "int8" : "FP8";
}

// Returns the error of a run with the quantized cache, which may be due to NaN logits.
Status probe_error(std::string_view cache, const Status& status) {
  return Status(status.code(),
                fmt::format("[engine] kv_cache_dtype: the probe of the {} KV cache failed; {}; set "
                            "`kv_cache_dtype` to auto",
                            cache, status.message()));
}

// A finished comparison of two runs of the probe.
struct ProbeResult {
  std::string_view cache;  // cache_name()
  double variation = 0.0;
  int num_tokens = 0;
  double seconds = 0.0;
  bool has_calculated_scales = false;  // of layers without scales in the checkpoint
};

// Describes the state of the scales, and the remedy. An int8 cache computes its own scales, so the
// checkpoint needs none.
std::string remedy(const ModelFiles& files, const ProbeResult& result) {
  const std::string without = fmt::format("set {} to auto", SettingName{"kv_cache_dtype"});
  const SettingName calculates = {"calculate_kv_scales"};
  if (result.cache == "int8") return without;
  const auto [num_layers, num_scaled] = count_kv_scales(files.config, *files.weights);
  if (result.has_calculated_scales) {
    return fmt::format(
        "{} of {} layers have scales of keys and values from the checkpoint, and the others "
        "calculated ones ({}); {}",
        num_scaled, num_layers, calculates, without);
  }
  return fmt::format(
      "the checkpoint has scales of keys and values (self_attn.k_scale, v_scale) in {} of {} "
      "layers, {}; {}, {}",
      num_scaled, num_layers,
      num_scaled == 0 ? "and the model needs some" : "and they do not fit the model", without,
      num_scaled == 0 ? fmt::format("or {} to true", calculates)
                      : "or take a checkpoint with other scales");
}

// Rounds up to 0.1 %, so that a fraction above a bound of whole percent also reads above the bound.
double percent_above(double fraction) {
  return std::ceil(1000 * fraction) / 10;
}

// All ranks have the same result, so only rank 0 logs it.
Status report_kv_probe(const ModelFiles& files, const ProbeResult& result, bool logs) {
  const KvProbeVerdict verdict = judge_kv_probe(result.variation);
  if (verdict == KvProbeVerdict::kRefusal) {
    return invalid_argument(fmt::format(
        "[engine] kv_cache_dtype: the {} KV cache moves too much of the next-token probability "
        "after {} tokens of a probe; got {:.1f} %, expected at most {:.0f} %; {}",
        result.cache, result.num_tokens, percent_above(result.variation), 100 * kKvProbeRefusal,
        remedy(files, result)));
  }
  if (!logs) return {};
  if (verdict == KvProbeVerdict::kGood) {
    log_info(
        "[engine] the {} KV cache moves {:.2f} % of the next-token probability after {} tokens "
        "of a probe (at most {:.0f} % is expected); checked in {:.2f} s",
        result.cache, 100 * result.variation, result.num_tokens, 100 * kKvProbeWarning,
        result.seconds);
  } else {
    log_warning(
        "[engine] {}: the {} KV cache moves {:.1f} % of the next-token probability "
        "after {} tokens of a probe; expected at most {:.0f} % (more than {:.0f} % is refused); "
        "{}",
        SettingName{"kv_cache_dtype"}, result.cache, percent_above(result.variation),
        result.num_tokens, 100 * kKvProbeWarning, 100 * kKvProbeRefusal, remedy(files, result));
  }
  return {};
}

// The most likely tokens, in descending order, without the chosen one before them.
std::span<const TokenLogprob> most_likely(const PositionLogprobs& position) {
  return std::span(position).subspan(std::min<size_t>(1, position.size()));
}

// Returns the sum of p - q over the tokens of p for which it is positive. For a token that q lacks,
// uses the last token of q, which is at least as likely.
double excess(std::span<const TokenLogprob> p, std::span<const TokenLogprob> q) {
  if (q.empty()) return p.empty() ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  double sum = 0.0;
  for (const TokenLogprob& token : p) {
    auto found = std::ranges::find(q, token.token_id, &TokenLogprob::token_id);
    if (found == q.end()) found = std::prev(q.end());
    const double difference = std::exp(double{token.logprob}) - std::exp(double{found->logprob});
    sum += std::isnan(difference) ? difference : std::max(difference, 0.0);
  }
  return sum;
}

}  // namespace

double mean_variation(std::span<const PositionLogprobs> got,
                      std::span<const PositionLogprobs> expected) {
  if (got.size() != expected.size() || got.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  double sum = 0.0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double more = excess(most_likely(got[i]), most_likely(expected[i]));
    const double less = excess(most_likely(expected[i]), most_likely(got[i]));
    if (std::isnan(more) || std::isnan(less)) return std::numeric_limits<double>::quiet_NaN();
    sum += std::max(more, less);
  }
  return sum / static_cast<double>(got.size());
}

KvProbeVerdict judge_kv_probe(double variation) {
  if (variation <= kKvProbeWarning) return KvProbeVerdict::kGood;
  return variation <= kKvProbeRefusal ? KvProbeVerdict::kWarning : KvProbeVerdict::kRefusal;
}

Result<std::vector<int32_t>> kv_probe_tokens(const ModelFiles& files, int max_tokens) {
  const auto size = static_cast<size_t>(std::clamp(max_tokens, 0, kKvProbeTokens));
  if (files.tokenizer != nullptr) {
    QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids, files.tokenizer->encode(kProbeText, true));
    ids.resize(std::min(ids.size(), size));
    return ids;
  }
  std::vector<int32_t> ids;
  // The fractional parts of multiples of the golden ratio are spread evenly for any number of them.
  constexpr double kGoldenRatio = 0.6180339887498949;
  for (size_t i = 0; i < size; ++i) {
    const double fraction = std::fmod(static_cast<double>(i + 1) * kGoldenRatio, 1.0);
    ids.push_back(static_cast<int32_t>(fraction * files.config.vocab_size));
  }
  return ids;
}

namespace {

// Fails if the model has no logits, or if the context is too short for a probe.
Result<Probe> make_probe(DeviceContext& context, const ModelFiles& files, const EnginePlan& plan,
                         Model& model) {
  if (files.config.embeds) return unimplemented("an embedding model has no logits to compare");
  QUIRE_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                         kv_probe_tokens(files, plan.sizes.limits.max_model_len - 1));
  if (ids.size() < 2) return unimplemented("the context is too short for a probe");
  const auto num_tokens = static_cast<int>(ids.size());
  return Probe{.context = context,
               .model = model,
               .token_ids = std::move(ids),
               .sizes = probe_sizes(plan, num_tokens),
               .engine_workspace_bytes = plan.target.attention.workspace_bytes};
}

// The largest magnitudes of a layer's keys and values. The unused slots of a cache are zeros, which
// do not change the result.
KvScaleValues largest_magnitudes(const KvLayout& layout, const TensorView& cache) {
  KvScaleValues largest = {0.0F, 0.0F};
  const int64_t num_elements = cache.shape.num_elements();
  for (int64_t i = 0; i < num_elements; ++i) {
    const bool is_key = layout.is_latent || i % layout.page_stride() < layout.value_offset();
    float& most = is_key ? largest.k : largest.v;
    const float magnitude = std::abs(element_as_f32(cache, i));
    // A NaN replaces any number, and stays.
    if (magnitude > most || std::isnan(magnitude)) most = magnitude;
  }
  if (layout.is_latent) largest.v = largest.k;  // the values are a part of the latent vectors
  return largest;
}

// The scales of every layer, from a cache with the probe's keys and values.
Result<std::vector<KvScaleValues>> scales_of_cache(const Probe& probe, const AttentionSetup& setup,
                                                   const KvCache& cache) {
  std::vector<KvScaleValues> by_layer(static_cast<size_t>(probe.model.config().num_layers));
  for (size_t g = 0; g < setup.kv_groups.size(); ++g) {
    const KvGroup& group = setup.kv_groups[g];
    const Shape shape = {num_probe_blocks(probe), group.layout.page_stride()};
    QUIRE_ASSIGN_OR_RETURN(const Tensor host, Tensor::host(shape, group.layout.dtype));
    for (size_t i = 0; i < group.layers.size(); ++i) {
      const TensorView device = {cache.caches(g)[i].k, group.layout.dtype, shape};
      QUIRE_RETURN_IF_ERROR(probe.context.copy_to_host(device, host.view.data));
      const KvScaleValues largest = largest_magnitudes(group.layout, host.view);
      if (!std::isfinite(largest.k) || !std::isfinite(largest.v)) {
        return invalid_argument(fmt::format(
            "got an infinity or a NaN among the keys or values of layer {}", group.layers[i]));
      }
      by_layer[static_cast<size_t>(group.layers[i])] = {kv_scale(largest.k), kv_scale(largest.v)};
    }
  }
  return by_layer;
}

std::string range_text(std::span<const KvScaleValues> scales, float KvScaleValues::*member) {
  const auto [least, most] = std::ranges::minmax(scales, {}, member);
  return fmt::format("{:.3g} to {:.3g}", least.*member, most.*member);
}

// The scales of a probe over an unquantized cache, and its predictions.
struct MeasuredScales {
  std::vector<KvScaleValues> by_layer;
  std::vector<PositionLogprobs> positions;
};

Result<MeasuredScales> measure_scales(const Probe& probe, const EnginePlan& plan) {
  QUIRE_ASSIGN_OR_RETURN(const AttentionSetup unquantized,
                         unquantized_attention(probe, plan.target.attention));
  MeasuredScales measured;
  const auto read_cache = [&](const KvCache& cache) {
    auto of_cache = scales_of_cache(probe, unquantized, cache);
    if (of_cache.ok()) measured.by_layer = std::move(*of_cache);
    return of_cache.status();
  };
  QUIRE_ASSIGN_OR_RETURN(measured.positions, run_probe(probe, unquantized, read_cache));
  return measured;
}

// Gives the layers without scales in the checkpoint the scales of a probe over an unquantized
// cache. Returns the probe's predictions.
Result<std::vector<PositionLogprobs>> calculate_kv_scales(DeviceContext& context,
                                                          const ModelFiles& files,
                                                          const EnginePlan& plan, Model& model) {
  const auto failed = [](const Status& status) {
    return Status(status.code(),
                  fmt::format("[engine] calculate_kv_scales: the scales of the FP8 KV cache cannot "
                              "be calculated; {}; leave calculate_kv_scales out",
                              status.message()));
  };
  const Result<Probe> probe = make_probe(context, files, plan, model);
  if (!probe.ok()) return failed(probe.status());
  Result<MeasuredScales> measured = measure_scales(*probe, plan);
  if (!measured.ok()) return failed(measured.status());
  const std::vector<KvScaleValues>& scales = measured->by_layer;
  const Result<int> num_added = model.add_kv_scales(scales);
  if (!num_added.ok()) return failed(num_added.status());
  if (context.parallel().rank > 0) return std::move(measured->positions);
  log_info(
      "[engine] calculated the scales of the FP8 KV cache of {} layers from the {} tokens of a "
      "probe, of all {} layers: keys {}, values {}; magnitudes up to {} times the probe's fit",
      *num_added, probe->token_ids.size(), scales.size(), range_text(scales, &KvScaleValues::k),
      range_text(scales, &KvScaleValues::v), kKvScaleMargin);
  return std::move(measured->positions);
}

}  // namespace

float kv_scale(float largest_magnitude) {
  return e4m3_scale(largest_magnitude * kKvScaleMargin);
}

Status probe_kv_cache(DeviceContext& context, const ModelFiles& files, const EnginePlan& plan,
                      Model& model) {
  std::optional<std::vector<PositionLogprobs>> expected;
  if (plan.calculates_kv_scales) {
    QUIRE_ASSIGN_OR_RETURN(expected, calculate_kv_scales(context, files, plan, model));
  }
  const WallTimer timer;
  const std::string_view cache = cache_name(plan);
  // With several ranks, an unchecked cache is an error, because the other ranks would wait in the
  // probe.
  const auto unchecked = [&](const Status& reason, std::string_view which) -> Status {
    if (context.parallel().size > 1) return reason;
    log_warning("[engine] the {} KV cache is not checked: {}{}", cache, which, reason.message());
    return {};
  };
  const bool logs = context.parallel().rank == 0;
  if (files.weights->names().empty()) {
    if (logs) log_info("[engine] the {} KV cache is not checked: the weights are random", cache);
    return {};
  }
  const Result<Probe> made = make_probe(context, files, plan, model);
  if (!made.ok()) return unchecked(made.status(), "");
  const Probe& probe = *made;
  if (!expected) {
    const Result<AttentionSetup> unquantized = unquantized_attention(probe, plan.target.attention);
    if (!unquantized.ok()) return unchecked(unquantized.status(), "");
    auto positions = run_probe(probe, *unquantized);
    if (!positions.ok()) {
      return unchecked(positions.status(), "the probe failed without it; ");
    }
    expected = std::move(*positions);
  }
  const auto got = run_probe(probe, plan.target.attention);
  if (!got.ok()) return probe_error(cache, got.status());
  const KvScaleCounts scales = count_kv_scales(files.config, *files.weights);
  return report_kv_probe(
      files,
      {.cache = cache,
       .variation = mean_variation(*got, *expected),
       .num_tokens = static_cast<int>(probe.token_ids.size()),
       .seconds = timer.seconds(),
       .has_calculated_scales = plan.calculates_kv_scales && scales.num_stored < scales.num_layers},
      logs);
}

}  // namespace quire
