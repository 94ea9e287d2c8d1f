#include "start/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/setting_name.h"
#include "model/decoder_config.h"
#include "model/model_loader.h"
#include "platform/runner.h"
#include "start/node_agreement.h"
#include "start/plan_rank.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "start/sizes.h"
#include "start/tuning_choice.h"

namespace quire {
namespace {

// Fails if products are to be computed in int8 and no matrix has integers: the CPU multiplies
// integers of quantized matrices by int8 activations, and expands FP8 to floats.
Status check_int8(const EngineConfig& config, const ModelFiles& files) {
  const std::optional<WeightFormat>& format = files.config.format;
  const bool has_integers = format && is_integer(format->scheme);
  if (input_rounding(config) != InputRounding::kInt8 || has_integers ||
      has_blocks(*files.weights)) {
    return {};
  }
  return invalid_argument(
      "[engine] cpu_activations: got int8 for a model without matrices of quantized integers, "
      "expected f32 or bf16; or take a GGUF file with quantized blocks, or integers of AWQ, GPTQ "
      "or compressed-tensors");
}

// Plans every rank of this process for one context length.
Result<std::vector<EnginePlan>> plan_process(std::span<const PlanInputs> ranks, int max_model_len,
                                             bool check_first) {
  std::vector<EnginePlan> plans;
  for (PlanInputs in : ranks) {
    in.sizes.max_model_len = max_model_len;
    QUIRE_ASSIGN_OR_RETURN(EnginePlan plan, plan_rank(in, check_first));
    plans.push_back(std::move(plan));
  }
  return plans;
}

// Plans every rank for one context length. All ranks, also of other nodes, get the number of blocks
// of the rank with the fewest.
Result<std::vector<EnginePlan>> plan_for_context(std::span<const PlanInputs> ranks,
                                                 int max_model_len, bool check_first) {
  Result<std::vector<EnginePlan>> plans = plan_process(ranks, max_model_len, check_first);
  Result<std::vector<int>> fewest = plans.status();
  if (plans.ok()) {
    fewest = plans->front().memory_plan.num_blocks;
    for (const EnginePlan& plan : *plans) (void)take_fewer(*fewest, plan.memory_plan.num_blocks);
  }
  fewest = agree_on_blocks(ranks.front().platform.nodes(), std::move(fewest));
  if (!fewest.ok()) return fewest.status();
  for (EnginePlan& plan : *plans) limit_blocks(plan.memory_request, *fewest, plan.memory_plan);
  return plans;
}

// Without max_model_len, halves the context until the cache can hold one sequence, and logs the
// result.
Result<std::vector<EnginePlan>> plan_longest_context(std::span<const PlanInputs> ranks) {
  const PlanInputs& in = ranks.front();
  const int max_model_len = in.sizes.max_model_len;
  const bool may_shrink = in.config.max_model_len == 0;
  const auto can_halve = [&](int length) { return may_shrink && length > in.sizes.block_size; };
  int length = max_model_len;
  Result<std::vector<EnginePlan>> plans = plan_for_context(ranks, length, can_halve(length));
  while (plans.status().code() == StatusCode::kResourceExhausted && can_halve(length)) {
    length /= 2;
    plans = plan_for_context(ranks, length, can_halve(length));
  }
  if (plans.ok() && length < max_model_len) {
    log_warning(
        "[memory] the model's context of {} tokens does not fit; it is limited to "
        "{} tokens (set {} to at most that, or raise {})",
        max_model_len, length, SettingName{"max_model_len"}, SettingName{"kv_cache_memory"});
  }
  return plans;
}

SchedulerConfig scheduler_config(const PlanInputs& in, const EnginePlan& plan) {
  const Sizes& sizes = in.sizes;
  // The prompt of an embedding may fill the context, because no token follows it.
  const int num_beyond = in.files.config.embeds ? 1 : 0;
  const DraftModel* draft = in.drafts.model;
  SchedulerConfig scheduler = {
      .max_num_seqs = sizes.max_num_seqs,
      .max_num_rule_seqs = sizes.max_num_rule_seqs,
      .max_num_batched_tokens = sizes.max_num_tokens,
      .max_model_len = plan.sizes.limits.max_model_len + num_beyond,
      .block_size = sizes.block_size,
      .tables = {},
      .num_drafts = sizes.num_drafts,
      .num_draft_kv_slots = draft == nullptr ? 0 : draft->num_kv_slots(sizes.num_drafts),
      .num_tokens_ahead = draft == nullptr ? 0 : draft->num_tokens_ahead(),
      .enable_prefix_caching = in.config.enable_prefix_caching,
      .enable_chunked_prefill = in.config.enable_chunked_prefill,
      .long_prefill_token_threshold = in.config.long_prefill_token_threshold,
      .block_hash_seed = in.config.block_hash_seed};
  for (size_t t = 0; t < plan.memory_request.tables.size(); ++t) {
    const KvTableBytes& table = plan.memory_request.tables[t];
    scheduler.tables.push_back({.num_blocks = plan.memory_plan.num_blocks[t],
                                .window = table.window,
                                .holds_states = table.holds_states});
  }
  return scheduler;
}

}  // namespace

Result<std::vector<EnginePlan>> plan_ranks(const EngineConfig& config, const ModelFiles& files,
                                           const Platform& platform, const DraftRequest& drafts,
                                           int64_t freed_bytes) {
  QUIRE_RETURN_IF_ERROR(check_settings(config));
  QUIRE_RETURN_IF_ERROR(check_int8(config, files));
  QUIRE_ASSIGN_OR_RETURN(const Sizes sizes, choose_sizes(config, files.config, platform.defaults(),
                                                         drafts.num_drafts));
  const DType dtype = weight_dtype(config, files.config.dtype);
  std::vector<PlanInputs> ranks;
  for (const auto& context : platform.contexts()) {
    QUIRE_RETURN_IF_ERROR(check_shards(files.config, context->parallel()));
    QUIRE_RETURN_IF_ERROR(
        check_slices(files.config, *files.weights, context->ops(), context->parallel()));
    ranks.push_back({.config = config,
                     .files = files,
                     .platform = platform,
                     .context = *context,
                     .drafts = drafts,
                     .dtype = dtype,
                     .kv_dtype = forced_kv_dtype(config).value_or(dtype),
                     // A model that embeds never decodes, and only decode steps have graphs.
                     .is_eager = config.enforce_eager || files.config.embeds,
                     .sizes = sizes,
                     .freed_bytes = freed_bytes,
                     .table = std::make_shared<TuningTable>()});
  }
  // All ranks select backends by the times of rank 0.
  QUIRE_RETURN_IF_ERROR(ranks.front().context.bind_thread());
  QUIRE_ASSIGN_OR_RETURN(TuningTable table, find_shared_table(ranks.front()));
  const auto shared_table = std::make_shared<const TuningTable>(std::move(table));
  for (PlanInputs& in : ranks) in.table = shared_table;
  QUIRE_ASSIGN_OR_RETURN(std::vector<EnginePlan> plans, plan_longest_context(ranks));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    plans[rank].scheduler = scheduler_config(ranks[rank], plans[rank]);
    QUIRE_RETURN_IF_ERROR(validate_scheduler_config(plans[rank].scheduler));
  }
  return plans;
}

Result<EnginePlan> plan_engine(const EngineConfig& config, const ModelFiles& files,
                               const Platform& platform, const DraftRequest& drafts) {
  QUIRE_CHECK(platform.contexts().size() == 1,
              "[engine] plan_engine() is for a platform with one rank");
  QUIRE_ASSIGN_OR_RETURN(std::vector<EnginePlan> plans,
                         plan_ranks(config, files, platform, drafts));
  return std::move(plans.front());
}

}  // namespace quire
