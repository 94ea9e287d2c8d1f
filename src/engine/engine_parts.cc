#include "engine/engine_parts.h"

#include "base/log.h"
#include "base/machine.h"
#include "cpu/ops/cpu_ops.h"
#include "engine/host_runner.h"

namespace quire {
namespace {

ModelInfo describe_model(const ModelFiles& files, const EnginePlan& plan) {
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = plan.limits.max_model_len;
  info.block_size = plan.limits.page_size;
  info.weight_dtype = dtype_name(plan.weight_dtype);
  info.kv_cache_dtype = dtype_name(plan.limits.kv_dtype);
  info.num_parameters = num_parameters(files.config);
  info.attention_backend = describe_backends(plan);
  return info;
}

RunnerParts runner_parts(const EngineParts& parts, const EnginePlan& plan) {
  return {.model = parts.model.get(),
          .ops = parts.ops.get(),
          .kv_cache = &parts.kv_cache,
          .decode_backends = plan.decode_backends,
          .prefill_backends = plan.prefill_backends,
          .workspace = {.arena = {static_cast<std::byte*>(parts.workspace.data()),
                                  parts.workspace.num_bytes()},
                        .counters = {}},
          .pool = parts.pool.get(),
          .max_num_seqs = plan.scheduler.max_num_seqs,
          .max_num_logit_rows = plan.limits.max_num_logit_rows};
}

}  // namespace

Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config, ModelFiles& files,
                                                     const LoadProgress& progress) {
  auto parts = std::make_unique<EngineParts>();
  parts->pool = std::make_unique<ThreadPool>(config.num_threads > 0 ? config.num_threads
                                                                    : num_usable_cores());
  parts->attention = make_cpu_backends(*parts->pool);
  QUIRE_ASSIGN_OR_RETURN(const EnginePlan plan, plan_engine(config, files, parts->attention));
  log_info("{}", describe(plan.memory, plan.kv));
  parts->ops = make_cpu_ops(*parts->pool);
  QUIRE_ASSIGN_OR_RETURN(
      parts->model, load_model(files.config, *files.weights, *parts->ops, plan.limits, progress));
  QUIRE_ASSIGN_OR_RETURN(parts->workspace, Buffer::host(plan.workspace_bytes));
  QUIRE_ASSIGN_OR_RETURN(parts->kv_cache,
                         KvCache::allocate(plan.kv_groups, plan.kv.num_blocks, *parts->ops));
  QUIRE_ASSIGN_OR_RETURN(parts->runner, HostRunner::create(runner_parts(*parts, plan)));
  parts->scheduler = plan.scheduler;
  parts->info = describe_model(files, plan);
  return parts;
}

}  // namespace quire
