#include "start/plan_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/numbers.h"
#include "model/decoder_config.h"
#include "model/decoder_sizes.h"
#include "model/model_loader.h"
#include "start/draft_model.h"
#include "start/model_identity.h"

namespace quire {
namespace {

// The query lengths of the target's decode steps.
std::vector<int> target_q_lens(const PlanInputs& in) {
  return in.platform.decode_q_lens(in.drafts.num_drafts, in.drafts.is_adaptive);
}

int64_t latent_head_width(const ModelConfig& config) {
  const std::optional<MlaConfig>& mla = decoder_config(config).mla;
  return mla ? mla->kv_lora_rank + std::max(mla->nope_head_dim, mla->v_head_dim) : 0;
}

Result<ModelPlan> plan_target(const PlanInputs& in, const ModelLimits& limits) {
  const ModelConfig& config = in.files.config;
  const Ops& ops = in.context.ops();
  QUIRE_ASSIGN_OR_RETURN(const int64_t activation_bytes,
                         estimate_activation_bytes(config, limits, ops));
  QUIRE_ASSIGN_OR_RETURN(WeightPlan weights,
                         plan_weights(config, *in.files.weights, ops, limits.parallel));
  return ModelPlan{
      .limits = limits,
      .decode_q_lens = target_q_lens(in),
      .weights = std::move(weights),
      .activation_bytes = activation_bytes,
      .attention = {.kv_groups = decoder_kv_groups(config, limits, ops.activation_dtype()),
                    .states = decoder_state_group(config, limits)}};
}

Result<ModelPlan> plan_draft_model(const PlanInputs& in, const ModelLimits& target) {
  const DraftModel& draft = *in.drafts.model;
  const Ops& ops = in.context.ops();
  const ModelLimits limits = draft.limits(target, in.sizes.max_num_seqs);
  QUIRE_RETURN_IF_ERROR(check_shards(draft.config(), limits.parallel));
  QUIRE_ASSIGN_OR_RETURN(WeightPlan weights, draft.plan_weights(limits, ops));
  QUIRE_ASSIGN_OR_RETURN(const int64_t activation_bytes, draft.activation_bytes(limits, ops));
  return ModelPlan{.limits = limits,
                   .decode_q_lens = draft.decode_q_lens(target_q_lens(in)),
                   .weights = std::move(weights),
                   .activation_bytes = activation_bytes,
                   .attention = {.kv_groups = draft.kv_groups(limits, ops.activation_dtype())}};
}

std::vector<KvGroup> groups_of(std::span<const ModelPlan> models) {
  std::vector<KvGroup> groups;
  for (const ModelPlan& model : models) {
    const std::vector<KvGroup>& of_model = model.attention.kv_groups;
    groups.insert(groups.end(), of_model.begin(), of_model.end());
  }
  return groups;
}

// Returns the target, and then the model that drafts if there is one, without attention backends.
// The models share block tables: a sequence has one list of blocks per window, and a page holds the
// keys and values of both models.
Result<std::vector<ModelPlan>> planned_models(const PlanInputs& in, const ModelLimits& limits) {
  const bool has_draft_model = in.drafts.model != nullptr;
  std::vector<ModelPlan> models(has_draft_model ? 2 : 1);
  QUIRE_ASSIGN_OR_RETURN(models.front(), plan_target(in, limits));
  if (has_draft_model) {
    QUIRE_ASSIGN_OR_RETURN(models.back(), plan_draft_model(in, limits));
  }
  std::vector<KvGroup> groups = groups_of(models);
  assign_tables(groups);
  auto next = groups.begin();
  for (ModelPlan& model : models) {
    for (KvGroup& group : model.attention.kv_groups) group.table = next++->table;
  }
  models.front().attention.states.table = static_cast<int>(table_windows(groups).size());
  return models;
}

// Returns the window of each block table: the tables of keys and values, then the table of states.
std::vector<int> windows_of(std::span<const ModelPlan> models, int block_size) {
  std::vector<int> windows = table_windows(groups_of(models));
  if (!models.front().attention.states.layers.empty()) windows.push_back(state_window(block_size));
  return windows;
}

// Selects the backends of the model's KV groups on one device and makes their plans. All groups
// share one workspace, because a layer's attention ends before the next begins.
Status plan_attention(const PlanInputs& in, ModelPlan& model) {
  const int max_num_seqs = in.sizes.max_num_seqs;
  const ModelLimits& limits = model.limits;
  const std::vector<int>& q_lens = model.decode_q_lens;
  AttentionSetup& setup = model.attention;
  setup.decode_keys = in.platform.decode_keys(max_num_seqs, limits.max_kv_len(), q_lens);
  for (DecodeKey& key : setup.decode_keys) key.eager |= in.is_eager;
  const PlanLimits largest = {.use = {},
                              .max_num_reqs = max_num_seqs,
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
  return {};
}

// The distributions of drafts: F32 [max_num_seqs, num_drafts, vocab_size].
int64_t draft_probs_bytes(const PlanInputs& in) {
  if (!in.drafts.has_probs) return 0;
  return (Saturated(in.sizes.max_num_seqs) * in.drafts.num_drafts * in.files.config.vocab_size *
          static_cast<int64_t>(sizeof(float)))
      .get();
}

int64_t lookup_bytes(const PlanInputs& in, const RunnerSizes& sizes) {
  return in.drafts.by_lookup ? in.context.lookup_drafter_bytes(drafter_limits(sizes)) : 0;
}

// The memory that is known before attention plans are made: a lower bound of the request.
Result<MemoryRequest> memory_without_plans(const PlanInputs& in, const RunnerSizes& sizes,
                                           std::span<const ModelPlan> models) {
  QUIRE_ASSIGN_OR_RETURN(MemoryBudget budget, in.context.memory_budget());
  budget.free_bytes += in.freed_bytes;
  MemoryRequest request = {
      .tables =
          kv_table_bytes(groups_of(models), models.front().attention.states, in.sizes.block_size),
      .sizes = in.sizes,
      .kv_cache_memory = in.config.kv_cache_memory,
      .budget = budget,
      .activation_bytes = draft_probs_bytes(in) + lookup_bytes(in, sizes)};
  for (const ModelPlan& model : models) {
    request.weight_bytes += model.weights.num_bytes;
    request.activation_bytes += model.activation_bytes;
  }
  return request;
}

// Returns RunnerParts::shape_key.
std::string shape_key(const PlanInputs& in) {
  const std::string target = model_key(in.config, in.files);
  if (in.drafts.model != nullptr) {
    const ModelConfig& draft = in.drafts.model->config();
    return fmt::format("{}, drafter {} {}x{}", target, draft.architecture, draft.num_layers,
                       draft.hidden_size);
  }
  return in.drafts.by_lookup ? target + ", lookup" : target;
}

}  // namespace

RunnerSizes runner_sizes(const PlanInputs& in) {
  const Sizes& sizes = in.sizes;
  // At least this many rows of logits, so that prompt log probabilities are computed in batches.
  constexpr int kMinLogitRows = 32;
  return {
      .limits = {.max_num_tokens = sizes.max_num_tokens,
                 .max_num_logit_rows =
                     std::max(sizes.max_num_seqs * (1 + sizes.num_drafts), kMinLogitRows),
                 .max_model_len = sizes.max_model_len,
                 .num_drafts = sizes.num_drafts,
                 .page_size = sizes.block_size,
                 .kv_dtype = in.kv_dtype,
                 .parallel = in.context.parallel(),
                 .tapped_layers = in.drafts.model == nullptr ? std::vector<int>()
                                                             : in.drafts.model->tapped_layers()},
      .max_num_seqs = sizes.max_num_seqs,
      .max_num_rule_seqs = sizes.max_num_rule_seqs,
      .vocab_size = in.files.config.vocab_size,
      .num_layers = in.files.config.num_layers,
      .decode_q_lens = target_q_lens(in),
      .enforce_eager = in.is_eager,
      .latent_head_width = latent_head_width(in.files.config)};
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
  // The blocks of a drafter attend in both directions, which few backends compute. A configured
  // backend that does not support them is used for the target only.
  if (selector.ok() || group.decode.causal) return selector;
  return create({});
}

Result<EnginePlan> plan_rank(const PlanInputs& in, bool check_first) {
  QUIRE_RETURN_IF_ERROR(in.context.bind_thread());
  EnginePlan plan;
  plan.dtype = in.dtype;
  plan.shape_key = shape_key(in);
  plan.calculates_kv_scales = in.config.calculate_kv_scales;
  plan.sizes = runner_sizes(in);
  QUIRE_ASSIGN_OR_RETURN(std::vector<ModelPlan> models, planned_models(in, plan.sizes.limits));
  if (check_first) {
    QUIRE_ASSIGN_OR_RETURN(const MemoryRequest least, memory_without_plans(in, plan.sizes, models));
    QUIRE_RETURN_IF_ERROR(plan_memory(least).status());
  }
  plan.sizes.windows = windows_of(models, in.sizes.block_size);
  for (const ModelPlan& model : models) {
    plan.sizes.max_columns = std::max(plan.sizes.max_columns, model.weights.max_columns);
  }
  if (models.size() > 1) {
    const ModelPlan& draft = models.back();
    for (const KvGroup& group : draft.attention.kv_groups) {
      plan.sizes.num_draft_layers += static_cast<int>(group.layers.size());
    }
    plan.sizes.draft_q_len = draft.decode_q_lens.front();
  }
  for (ModelPlan& model : models) QUIRE_RETURN_IF_ERROR(plan_attention(in, model));
  // The budget is read after the attention plans were made, so it excludes the memory that they
  // took.
  QUIRE_ASSIGN_OR_RETURN(plan.memory_request, memory_without_plans(in, plan.sizes, models));
  plan.target = std::move(models.front());
  AttentionSetup& attention = plan.target.attention;
  if (models.size() > 1) {
    plan.draft = std::move(models.back());
    // The drafter runs after the target, in the same workspace.
    attention.workspace_bytes =
        std::max(attention.workspace_bytes, plan.draft->attention.workspace_bytes);
  }
  const RunnerBytes runner = in.platform.runner_bytes(plan.sizes, attention.selectors);
  plan.memory_request.activation_bytes += runner.buffers;
  plan.memory_request.workspace_bytes = static_cast<int64_t>(attention.workspace_bytes);
  plan.memory_request.reserve_bytes = runner.reserve;
  QUIRE_ASSIGN_OR_RETURN(plan.memory_plan, plan_memory(plan.memory_request));
  return plan;
}

}  // namespace quire
