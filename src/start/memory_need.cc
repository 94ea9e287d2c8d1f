#include "start/memory_need.h"

#include <algorithm>
#include <vector>

#include "start/model_files.h"
#include "start/node_setup.h"
#include "start/replica_plan.h"
#include "start/settings.h"
#include "start/speculation.h"

namespace quire {
namespace {

int64_t bytes_of(const EnginePlan& plan) {
  const MemoryRequest& request = plan.memory_request;
  return request.weight_bytes + request.activation_bytes + request.workspace_bytes +
         request.reserve_bytes + plan.memory_plan.kv_bytes;
}

}  // namespace

Result<MemoryNeed> plan_memory_need(const EngineConfig& wanted, int64_t freed_bytes) {
  QUIRE_ASSIGN_OR_RETURN(const EngineConfig config, place_node(wanted));
  QUIRE_RETURN_IF_ERROR(check_settings(config));
  QUIRE_ASSIGN_OR_RETURN(const Speculation given, read_speculation(config.speculative_config));
  QUIRE_ASSIGN_OR_RETURN(const ModelFiles files, open_model_files(config));
  QUIRE_ASSIGN_OR_RETURN(const Speculation speculation, settle_method(given, config, files));
  std::vector<PlannedReplica> replicas;
  QUIRE_RETURN_IF_ERROR(plan_replicas(config, speculation, files, nullptr, replicas, freed_bytes));
  const Device& device = replicas.front().platform->contexts().front()->device();
  MemoryNeed need = {.is_on_gpu = device.kind != DeviceKind::kCpu};
  for (const PlannedReplica& replica : replicas) {
    for (const EnginePlan& plan : replica.plans) {
      const int64_t free_bytes = plan.memory_request.budget.free_bytes - freed_bytes;
      const int64_t least_free = least_free_bytes(plan.memory_request);
      if (need.is_on_gpu) {
        need.num_bytes = std::max(need.num_bytes, bytes_of(plan));
        need.least_free_bytes = std::max(need.least_free_bytes, least_free);
        need.free_bytes = std::max(need.free_bytes, free_bytes);
      } else {
        need.num_bytes += bytes_of(plan);
        need.least_free_bytes += least_free;
        need.free_bytes += free_bytes;
      }
    }
  }
  return need;
}

}  // namespace quire
