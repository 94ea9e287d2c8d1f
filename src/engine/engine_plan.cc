#include "engine/engine_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/byte_archive.h"
#include "base/check.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/contradictions.h"
#include "engine/measured_table.h"
#include "engine/resolved_config.h"
#include "model/decoder_config.h"
#include "model/families.h"
#include "nodes/nodes.h"
#include "platform/runner.h"

namespace quire {
namespace {

// The inputs of every decision of one plan. None of them changes while the plan is made.
struct PlanInputs {
  const EngineConfig& config;  // resolved
  const ModelFiles& files;
  const Platform& platform;
  DeviceContext& context;
  DType kv_dtype;
  const DraftRequest& drafts;
  std::shared_ptr<const TuningTable> table;  // empty until find_tuning_table()
};

// The query lengths of the target's decode steps.
std::vector<int> target_q_lens(const PlanInputs& in) {
  return in.platform.decode_q_lens(in.drafts.num_drafts, in.drafts.is_adaptive);
}

int64_t latent_head_width(const ModelConfig& config) {
  const std::optional<MlaConfig>& mla = decoder_config(config).mla;
  return mla ? mla->kv_lora_rank + std::max(mla->nope_head_dim, mla->v_head_dim) : 0;
}

RunnerSizes runner_sizes(const PlanInputs& in, int max_model_len) {
  const EngineConfig& config = in.config;
  // At least this many rows of logits, so that prompt log probabilities are computed in batches.
  constexpr int kMinLogitRows = 32;
  return {
      .limits = {.max_num_tokens = config.max_num_batched_tokens,
                 .max_num_logit_rows =
                     std::max(config.max_num_seqs * (1 + in.drafts.num_drafts), kMinLogitRows),
                 .max_model_len = max_model_len,
                 .num_drafts = in.drafts.num_drafts,
                 .page_size = config.block_size,
                 .kv_dtype = in.kv_dtype,
                 .parallel = in.context.parallel(),
                 .tapped_layers = in.drafts.model == nullptr ? std::vector<int>()
                                                             : in.drafts.model->tapped_layers()},
      .max_num_seqs = config.max_num_seqs,
      .max_num_rule_seqs = config.max_num_rule_seqs,
      .vocab_size = in.files.config.vocab_size,
      .num_layers = in.files.config.num_layers,
      .decode_q_lens = target_q_lens(in),
      .enforce_eager = config.enforce_eager,
      .latent_head_width = latent_head_width(in.files.config)};
}

// A model of the plan: the target, or the model that drafts for it.
struct PlannedModel {
  ModelLimits limits;
  std::vector<int> decode_q_lens;  // query tokens per sequence of steps that decode, ascending
  std::vector<KvGroup> kv_groups;
  WeightPlan weights;
  int64_t activation_bytes = 0;
};

Result<PlannedModel> plan_target(const PlanInputs& in, const ModelLimits& limits) {
  const ModelConfig& config = in.files.config;
  const Ops& ops = in.context.ops();
  QUIRE_ASSIGN_OR_RETURN(const int64_t activation_bytes,
                         estimate_activation_bytes(config, limits, ops));
  QUIRE_ASSIGN_OR_RETURN(WeightPlan weights,
                         plan_weights(config, *in.files.weights, ops, limits.parallel));
  return PlannedModel{.limits = limits,
                      .decode_q_lens = target_q_lens(in),
                      .kv_groups = make_kv_groups(config, limits, ops.activation_dtype()),
                      .weights = std::move(weights),
                      .activation_bytes = activation_bytes};
}

Result<PlannedModel> plan_draft_model(const PlanInputs& in, const ModelLimits& target) {
  const DraftModel& draft = *in.drafts.model;
  const Ops& ops = in.context.ops();
  const ModelLimits limits = draft.limits(target, in.config.max_num_seqs);
  QUIRE_RETURN_IF_ERROR(check_shards(draft.config(), limits.parallel));
  QUIRE_ASSIGN_OR_RETURN(WeightPlan weights, draft.plan_weights(limits, ops));
  QUIRE_ASSIGN_OR_RETURN(const int64_t activation_bytes, draft.activation_bytes(limits, ops));
  return PlannedModel{.limits = limits,
                      .decode_q_lens = draft.decode_q_lens(target_q_lens(in)),
                      .kv_groups = draft.kv_groups(limits, ops.activation_dtype()),
                      .weights = std::move(weights),
                      .activation_bytes = activation_bytes};
}

std::vector<KvGroup> groups_of(std::span<const PlannedModel> models) {
  std::vector<KvGroup> groups;
  for (const PlannedModel& model : models) {
    groups.insert(groups.end(), model.kv_groups.begin(), model.kv_groups.end());
  }
  return groups;
}

// The target, then the model that drafts, if there is one. A sequence has one list of blocks per
// window, which the models share: a page holds the keys and values of all.
Result<std::vector<PlannedModel>> planned_models(const PlanInputs& in, const ModelLimits& limits) {
  const bool has_draft_model = in.drafts.model != nullptr;
  std::vector<PlannedModel> models(has_draft_model ? 2 : 1);
  QUIRE_ASSIGN_OR_RETURN(models.front(), plan_target(in, limits));
  if (has_draft_model) {
    QUIRE_ASSIGN_OR_RETURN(models.back(), plan_draft_model(in, limits));
  }
  std::vector<KvGroup> groups = groups_of(models);
  assign_tables(groups);
  auto next = groups.begin();
  for (PlannedModel& model : models) {
    for (KvGroup& group : model.kv_groups) group.table = next++->table;
  }
  return models;
}

Result<AttentionSelector> make_selector(const PlanInputs& in, const KvGroup& group,
                                        std::span<const int> q_lens) {
  const auto create = [&](const BackendPreference& preference) {
    return AttentionSelector::create(in.context.attention(), {group.decode, group.prefill},
                                     in.context.device(), preference, in.table, q_lens);
  };
  Result<AttentionSelector> selector = create({.any = in.config.attention_backend,
                                               .decode = in.config.decode_attention_backend,
                                               .prefill = in.config.prefill_attention_backend});
  // The blocks of a drafter attend in both directions, which few backends compute. One that cannot
  // may still be named for the target.
  if (selector.ok() || group.decode.causal) return selector;
  return create({});
}

// Selects the backends of the KV groups on one device and makes their plans. All groups share one
// workspace, because a layer's attention ends before the next begins.
Result<AttentionSetup> plan_attention(const PlanInputs& in, const PlannedModel& model) {
  const EngineConfig& config = in.config;
  const ModelLimits& limits = model.limits;
  const std::vector<int>& q_lens = model.decode_q_lens;
  AttentionSetup setup;
  setup.kv_groups = model.kv_groups;
  setup.decode_keys = in.platform.decode_keys(config.max_num_seqs, limits.max_kv_len(), q_lens);
  for (DecodeKey& key : setup.decode_keys) key.eager |= config.enforce_eager;
  const PlanLimits largest = {.use = {},
                              .max_num_reqs = config.max_num_seqs,
                              .max_num_tokens = limits.max_num_tokens,
                              .max_kv_len = limits.max_kv_len()};
  for (const KvGroup& group : setup.kv_groups) {
    QUIRE_ASSIGN_OR_RETURN(AttentionSelector selector, make_selector(in, group, q_lens));
    QUIRE_ASSIGN_OR_RETURN(AttentionPlans plans,
                           AttentionPlans::make(selector, largest, setup.decode_keys));
    setup.workspace_bytes = std::max(setup.workspace_bytes, plans.workspace_bytes());
    setup.selectors.push_back(std::move(selector));
    setup.plans.push_back(std::move(plans));
  }
  return setup;
}

// The times measured on this device, now or at an earlier start.
Result<TuningTable> measure_backends(const PlanInputs& in, int max_model_len) {
  const RunnerSizes sizes = runner_sizes(in, max_model_len);
  const std::vector<int>& q_lens = sizes.decode_q_lens;
  std::vector<AttentionSelector> selectors;  // their candidates compete
  for (const KvGroup& group :
       make_kv_groups(in.files.config, sizes.limits, in.context.ops().activation_dtype())) {
    QUIRE_ASSIGN_OR_RETURN(AttentionSelector selector, make_selector(in, group, q_lens));
    selectors.push_back(std::move(selector));
  }
  const std::string& device = in.context.device().name;
  return measured_table(
      selectors, {.device = device,
                  .file = measured_table_file(device, gpu_driver_version()),
                  .steps = {.max_num_seqs = sizes.max_num_seqs,
                            .max_num_tokens = sizes.limits.max_num_tokens,
                            .max_kv_len = sizes.limits.max_kv_len(),
                            .decode_q_lens = q_lens},
                  .measure = [&](std::span<AttentionBackend* const> backends,
                                 const MeasureConfig& config, const OnMeasured& on_measured) {
                    return measure_attention(in.context, backends, config, on_measured);
                  }});
}

// `tuning_table` names a file, or one of the two sources. Without it, a device that the build has
// no table for is measured. A CPU has no table and nothing to measure.
Result<TuningTable> find_tuning_table(const PlanInputs& in, int max_model_len) {
  const std::string& wanted = in.config.tuning_table;
  const Device& device = in.context.device();
  if (wanted.empty() || wanted == "builtin" || wanted == "measured") {
    TuningTable builtin = builtin_table(device);
    const bool is_measured = wanted == "measured" || (wanted.empty() && builtin.points().empty());
    if (device.kind == DeviceKind::kCpu || !is_measured) return builtin;
    return measure_backends(in, max_model_len);
  }
  Result<TuningTable> table = TuningTable::read(wanted);
  if (!table.ok()) return invalid_argument("[engine] tuning_table: " + table.status().message());
  return table;
}

// The table of node 0. Its times are rounded on the way, so node 0 reads them back, too.
Result<TuningTable> find_shared_table(const PlanInputs& in, int max_model_len) {
  Nodes* const nodes = in.platform.nodes();
  if (nodes == nullptr) return find_tuning_table(in, max_model_len);
  std::string csv;
  if (nodes->node() == 0) {
    QUIRE_ASSIGN_OR_RETURN(const TuningTable own, find_tuning_table(in, max_model_len));
    if (!own.points().empty()) csv = to_csv(own.rows());
  }
  QUIRE_ASSIGN_OR_RETURN(csv, nodes->broadcast("the times of backends", csv));
  return csv.empty() ? TuningTable() : TuningTable::parse(csv, "the times of node 0");
}

// F32 [max_num_seqs, num_drafts, vocab_size], as DraftCall::probs.
int64_t draft_probs_bytes(const PlanInputs& in) {
  if (!in.drafts.has_probs) return 0;
  return (Saturated(in.config.max_num_seqs) * in.drafts.num_drafts * in.files.config.vocab_size *
          static_cast<int64_t>(sizeof(float)))
      .get();
}

int64_t lookup_bytes(const PlanInputs& in, const RunnerSizes& sizes) {
  return in.drafts.by_lookup ? in.context.lookup_drafter_bytes(drafter_limits(sizes)) : 0;
}

// The memory that is known before attention plans are made: a lower bound of the request.
Result<MemoryRequest> memory_without_plans(const PlanInputs& in, const RunnerSizes& sizes,
                                           std::span<const PlannedModel> models) {
  QUIRE_ASSIGN_OR_RETURN(const MemoryBudget budget, in.context.memory_budget());
  MemoryRequest request = {.tables = kv_table_bytes(groups_of(models)),
                           .block_size = in.config.block_size,
                           .max_model_len = models.front().limits.max_model_len,
                           .max_num_seqs = in.config.max_num_seqs,
                           .max_num_batched_tokens = in.config.max_num_batched_tokens,
                           .kv_cache_memory = in.config.kv_cache_memory,
                           .budget = budget,
                           .activation_bytes = draft_probs_bytes(in) + lookup_bytes(in, sizes)};
  for (const PlannedModel& model : models) {
    request.weight_bytes += model.weights.num_bytes;
    request.activation_bytes += model.activation_bytes;
  }
  return request;
}

// The decisions that depend on the longest context.
struct ContextPlan {
  RunnerSizes sizes;
  WeightPlan weights;
  AttentionSetup attention;
  std::optional<DraftModelPlan> draft;
  MemoryRequest memory_request;
  MemoryPlan memory_plan;
};

// Plans one rank for one context length; fails if the cache cannot hold one sequence of it. With
// `check_first`, a context that does not fit even without attention plans fails before they are
// made. A window as long as the context has no effect, so the KV groups depend on the length.
Result<ContextPlan> plan_rank(const PlanInputs& in, int max_model_len, bool check_first) {
  QUIRE_RETURN_IF_ERROR(in.context.bind_thread());
  ContextPlan plan;
  plan.sizes = runner_sizes(in, max_model_len);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<PlannedModel> models,
                         planned_models(in, plan.sizes.limits));
  if (check_first) {
    QUIRE_ASSIGN_OR_RETURN(const MemoryRequest least, memory_without_plans(in, plan.sizes, models));
    QUIRE_RETURN_IF_ERROR(plan_memory(least).status());
  }
  plan.sizes.windows = table_windows(groups_of(models));
  for (const PlannedModel& model : models) {
    plan.sizes.max_columns = std::max(plan.sizes.max_columns, model.weights.max_columns);
  }
  const PlannedModel& target = models.front();
  plan.weights = target.weights;
  QUIRE_ASSIGN_OR_RETURN(plan.attention, plan_attention(in, target));
  if (models.size() > 1) {
    const PlannedModel& draft = models.back();
    for (const KvGroup& group : draft.kv_groups) {
      plan.sizes.num_draft_layers += static_cast<int>(group.layers.size());
    }
    plan.sizes.draft_q_len = draft.decode_q_lens.front();
    plan.draft = DraftModelPlan{.limits = draft.limits, .weights = draft.weights, .attention = {}};
    QUIRE_ASSIGN_OR_RETURN(plan.draft->attention, plan_attention(in, draft));
    // The drafter runs after the target, in the same workspace.
    plan.attention.workspace_bytes =
        std::max(plan.attention.workspace_bytes, plan.draft->attention.workspace_bytes);
  }
  // The attention plans already hold memory of the device, which the budget that is read now no
  // longer contains.
  QUIRE_ASSIGN_OR_RETURN(plan.memory_request, memory_without_plans(in, plan.sizes, models));
  const RunnerBytes runner = in.platform.runner_bytes(plan.sizes, plan.attention.selectors);
  plan.memory_request.activation_bytes += runner.buffers;
  plan.memory_request.workspace_bytes = static_cast<int64_t>(plan.attention.workspace_bytes);
  plan.memory_request.reserve_bytes = runner.reserve;
  QUIRE_ASSIGN_OR_RETURN(plan.memory_plan, plan_memory(plan.memory_request));
  return plan;
}

// Lowers the numbers to the other's; false if there are not as many.
bool take_fewer(std::vector<int>& fewest, std::span<const int> other) {
  if (fewest.size() != other.size()) return false;
  std::ranges::transform(fewest, other, fewest.begin(),
                         [](int a, int b) { return std::min(a, b); });
  return true;
}

// The blocks of the node with the fewest, by table, or the error of the first node that has one.
// Every node gets the same result.
Result<std::vector<int>> agree_on_blocks(Nodes& nodes, const Result<std::vector<int>>& own) {
  ByteWriter writer;
  writer(static_cast<uint8_t>(own.status().code()), own.status().message(),
         own.ok() ? *own : std::vector<int>());
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                         nodes.all_gather("the plan of memory", writer.take()));
  std::vector<int> fewest;
  for (size_t node = 0; node < all.size(); ++node) {
    uint8_t code = 0;
    std::string message;
    std::vector<int> num_blocks;
    ByteReader reader(all[node]);
    reader(code, message, num_blocks);
    if (node == 0) fewest = num_blocks;
    const auto status_code = static_cast<StatusCode>(code);
    if (code > static_cast<uint8_t>(StatusCode::kUnavailable) || !reader.is_complete() ||
        (status_code == StatusCode::kOk && !take_fewer(fewest, num_blocks))) {
      return internal_error(fmt::format("[nodes] the memory plan of node {} is malformed", node));
    }
    if (status_code != StatusCode::kOk) {
      return Status(status_code, fmt::format("{} (on node {})", one_line(message), node));
    }
  }
  return fewest;
}

// The same for all ranks of this process.
Result<std::vector<ContextPlan>> plan_process(std::span<const PlanInputs> ranks, int max_model_len,
                                              bool check_first) {
  std::vector<ContextPlan> plans;
  for (const PlanInputs& in : ranks) {
    QUIRE_ASSIGN_OR_RETURN(ContextPlan plan, plan_rank(in, max_model_len, check_first));
    plans.push_back(std::move(plan));
  }
  return plans;
}

// The same for all ranks, each of which gets as many blocks as the rank with the fewest.
Result<std::vector<ContextPlan>> plan_for_context(std::span<const PlanInputs> ranks,
                                                  int max_model_len, bool check_first) {
  Result<std::vector<ContextPlan>> plans = plan_process(ranks, max_model_len, check_first);
  Result<std::vector<int>> fewest = plans.status();
  if (plans.ok()) {
    fewest = plans->front().memory_plan.num_blocks;
    for (const ContextPlan& plan : *plans) (void)take_fewer(*fewest, plan.memory_plan.num_blocks);
  }
  if (Nodes* nodes = ranks.front().platform.nodes()) fewest = agree_on_blocks(*nodes, fewest);
  if (!fewest.ok()) return fewest.status();
  for (ContextPlan& plan : *plans) limit_blocks(plan.memory_request, *fewest, plan.memory_plan);
  return plans;
}

// Without max_model_len, halves the context until the cache can hold one sequence, and logs it.
Result<std::vector<ContextPlan>> plan_longest_context(std::span<const PlanInputs> ranks,
                                                      int max_model_len) {
  const PlanInputs& in = ranks.front();
  const bool may_shrink = in.config.max_model_len == 0;
  const auto can_halve = [&](int length) { return may_shrink && length > in.config.block_size; };
  int length = max_model_len;
  Result<std::vector<ContextPlan>> plans = plan_for_context(ranks, length, can_halve(length));
  while (plans.status().code() == StatusCode::kResourceExhausted && can_halve(length)) {
    length /= 2;
    plans = plan_for_context(ranks, length, can_halve(length));
  }
  if (plans.ok() && length < max_model_len) {
    log_warning(
        "[memory] the model's context of {} tokens does not fit; it is limited to "
        "{} tokens (set `max_model_len` to at most that, or raise `kv_cache_memory`)",
        max_model_len, length);
  }
  return plans;
}

SchedulerConfig scheduler_config(const PlanInputs& in, const ContextPlan& plan) {
  const EngineConfig& config = in.config;
  // A prompt to embed may fill the context: the token that would follow it is not computed.
  const int num_beyond = in.files.config.embeds ? 1 : 0;
  const DraftModel* draft = in.drafts.model;
  SchedulerConfig scheduler = {
      .max_num_seqs = config.max_num_seqs,
      .max_num_rule_seqs = config.max_num_rule_seqs,
      .max_num_batched_tokens = config.max_num_batched_tokens,
      .max_model_len = plan.sizes.limits.max_model_len + num_beyond,
      .block_size = config.block_size,
      .tables = {},
      .num_drafts = in.drafts.num_drafts,
      .num_draft_kv_slots = draft == nullptr ? 0 : draft->num_kv_slots(in.drafts.num_drafts),
      .num_tokens_ahead = draft == nullptr ? 0 : draft->num_tokens_ahead(),
      .enable_prefix_caching = config.enable_prefix_caching,
      .enable_chunked_prefill = config.enable_chunked_prefill};
  for (size_t t = 0; t < plan.memory_request.tables.size(); ++t) {
    scheduler.tables.push_back({.num_blocks = plan.memory_plan.num_blocks[t],
                                .window = plan.memory_request.tables[t].window});
  }
  return scheduler;
}

}  // namespace

Result<std::vector<EnginePlan>> plan_ranks(const EngineConfig& wanted, const ModelFiles& files,
                                           const Platform& platform, const DraftRequest& drafts) {
  QUIRE_ASSIGN_OR_RETURN(
      const EngineConfig config,
      resolve_config(wanted, files.config, platform.defaults(), drafts.num_drafts));
  QUIRE_RETURN_IF_ERROR(check_int8(config, files));
  const DType dtype = choose_dtype(config, files.config);
  QUIRE_ASSIGN_OR_RETURN(const DType kv_dtype, choose_kv_dtype(config, dtype));
  QUIRE_RETURN_IF_ERROR(check_calculated_scales(config));
  QUIRE_ASSIGN_OR_RETURN(const int max_model_len, choose_max_model_len(config, files.config));
  std::vector<PlanInputs> ranks;
  for (const auto& context : platform.contexts()) {
    QUIRE_RETURN_IF_ERROR(check_shards(files.config, context->parallel()));
    QUIRE_RETURN_IF_ERROR(
        check_slices(files.config, *files.weights, context->ops(), context->parallel()));
    ranks.push_back(
        {config, files, platform, *context, kv_dtype, drafts, std::make_shared<TuningTable>()});
  }
  // All ranks choose by the times of rank 0.
  QUIRE_RETURN_IF_ERROR(ranks.front().context.bind_thread());
  QUIRE_ASSIGN_OR_RETURN(TuningTable table, find_shared_table(ranks.front(), max_model_len));
  const auto shared_table = std::make_shared<const TuningTable>(std::move(table));
  for (PlanInputs& in : ranks) in.table = shared_table;
  QUIRE_ASSIGN_OR_RETURN(std::vector<ContextPlan> contexts,
                         plan_longest_context(ranks, max_model_len));
  std::vector<EnginePlan> plans;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ContextPlan& plan = contexts[rank];
    SchedulerConfig scheduler = scheduler_config(ranks[rank], plan);
    QUIRE_RETURN_IF_ERROR(validate_scheduler_config(scheduler));
    plans.push_back({.dtype = dtype,
                     .sizes = std::move(plan.sizes),
                     .weights = std::move(plan.weights),
                     .attention = std::move(plan.attention),
                     .draft = std::move(plan.draft),
                     .memory_request = std::move(plan.memory_request),
                     .memory_plan = std::move(plan.memory_plan),
                     .scheduler = std::move(scheduler),
                     .calculates_kv_scales = config.calculate_kv_scales});
  }
  return plans;
}

Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelFiles& files,
                               const Platform& platform, const DraftRequest& drafts) {
  QUIRE_CHECK(platform.contexts().size() == 1, "[engine] the plan of one rank is not that of all");
  QUIRE_ASSIGN_OR_RETURN(std::vector<EnginePlan> plans,
                         plan_ranks(config, files, platform, drafts));
  return std::move(plans.front());
}

DrafterLimits drafter_limits(const RunnerSizes& sizes) {
  return {.num_drafts = sizes.limits.num_drafts,
          .max_num_seqs = sizes.max_num_seqs,
          .max_model_len = sizes.limits.max_model_len,
          .vocab_size = sizes.vocab_size};
}

SelectionReport report_attention(const AttentionSetup& attention) {
  std::vector<std::string> names;
  for (const KvGroup& group : attention.kv_groups) {
    if (attention.kv_groups.size() == 1) {
      names.emplace_back();
    } else if (group.decode.window == 0) {
      names.push_back(fmt::format("{} layers without a window, ", group.layers.size()));
    } else {
      names.push_back(
          fmt::format("{} layers of window {}, ", group.layers.size(), group.decode.window));
    }
  }
  return report_selection(attention.selectors, names, attention.decode_keys);
}

}  // namespace quire
