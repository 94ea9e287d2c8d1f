#include "start/replica_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "start/model_files.h"
#include "start/node_agreement.h"
#include "start/platform_choice.h"

namespace quire {
namespace {

// Opens the drafter's model, if a model drafts, and plans the replica's ranks with it.
Status plan_with_drafter(const EngineConfig& config, const Speculation& speculation,
                         const ModelFiles& files, int64_t freed_bytes, PlannedReplica& replica) {
  const Platform& platform = *replica.platform;
  if (platform.contexts().front()->device().kind != DeviceKind::kCpu) {
    QUIRE_RETURN_IF_ERROR(refuse_unpadded_drafts(speculation));
  }
  if (speculation.draft_model) {
    QUIRE_ASSIGN_OR_RETURN(replica.draft,
                           DraftModel::open(config, *speculation.draft_model, files.config));
  }
  const Verification& verification = speculation.verification;
  Result<std::vector<EnginePlan>> plans =
      plan_ranks(config, files, platform,
                 {.num_drafts = speculation.num_drafts,
                  .model = replica.draft.get(),
                  .has_probs = verification.samples_drafts,
                  .by_lookup = speculation.lookup.has_value(),
                  .is_adaptive = verification.is_adaptive || !speculation.draft_ranges.empty()},
                 freed_bytes);
  if (plans.ok()) {
    replica.plans = std::move(*plans);
    return {};
  }
  const Status& error = plans.status();
  if (replica.draft == nullptr || error.code() != StatusCode::kResourceExhausted) return error;
  return resource_exhausted(
      fmt::format("{}; the plan includes the drafter {}; use a smaller one, or leave out "
                  "`speculative_config`",
                  error.message(), replica.draft->name()));
}

// Fails unless all nodes have the same plan. nodes: null on a single node.
Status check_agreed(const EngineConfig& config, const ModelFiles& files, Nodes* nodes,
                    const PlannedReplica& replica) {
  const EnginePlan& plan = replica.plans.front();
  QUIRE_RETURN_IF_ERROR(check_same_plan(nodes, plan, replica.draft.get()));
  const Device& device = replica.platform->contexts().front()->device();
  if (nodes == nullptr || device.kind != DeviceKind::kCpu) return {};
  return check_step_message(plan.scheduler.max_num_batched_tokens, files.config.hidden_size,
                            config.tensor_parallel_size);
}

int served_context(const PlannedReplica& replica) {
  return replica.plans.front().sizes.limits.max_model_len;
}

}  // namespace

Result<Speculation> settle_method(const Speculation& speculation, const EngineConfig& config,
                                  const ModelFiles& files) {
  return settle_method(speculation, config.speculative_config,
                       has_own_drafter(files.config, *files.weights));
}

Status plan_replicas(const EngineConfig& config, const Speculation& speculation,
                     const ModelFiles& files, const std::shared_ptr<Nodes>& nodes,
                     std::vector<PlannedReplica>& replicas, int64_t freed_bytes) {
  for (int r = 0; r < config.data_parallel_size; ++r) {
    PlannedReplica& replica = replicas.emplace_back();
    QUIRE_ASSIGN_OR_RETURN(
        replica.platform,
        make_platform(config, files, nodes, {.rank = r, .size = config.data_parallel_size},
                      r == 0 ? nullptr : replicas.front().platform->choices()));
    const Device& device = replica.platform->contexts().front()->device();
    QUIRE_RETURN_IF_ERROR(check_same(nodes.get(), "device", device.name));
    QUIRE_RETURN_IF_ERROR(plan_with_drafter(config, speculation, files, freed_bytes, replica));
    QUIRE_RETURN_IF_ERROR(check_agreed(config, files, nodes.get(), replica));
    const int length = served_context(replica);
    const int expected = served_context(replicas.front());
    if (length == expected) continue;
    return resource_exhausted(
        fmt::format("[memory] replica {} has memory for a context of {} tokens, expected {} as in "
                    "replica 0; set `max_model_len` to at most {}",
                    r, length, expected, std::min(length, expected)));
  }
  return {};
}

}  // namespace quire
