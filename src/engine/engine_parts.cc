#include "engine/engine_parts.h"

#include "base/log.h"
#include "engine/attention_report.h"
#include "model/footprint.h"

namespace quire {
namespace {

ModelInfo describe_model(const ModelFiles& files, const EnginePlan& plan) {
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = plan.limits.max_model_len;
  info.max_num_seqs = plan.scheduler.max_num_seqs;
  info.block_size = plan.limits.page_size;
  info.weight_dtype = dtype_name(plan.dtype);
  info.kv_cache_dtype = dtype_name(plan.limits.kv_dtype);
  info.num_parameters = num_parameters(files.config);
  info.bos_token_id = files.config.bos_token_id;
  const std::vector<int>& eos_ids = files.generation.eos_token_ids;
  info.eos_token_ids = eos_ids.empty() ? files.config.eos_token_ids : eos_ids;
  info.attention_backend = list_backends(plan);
  return info;
}

}  // namespace

Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config,
                                                     const Speculation& speculation,
                                                     ModelFiles& files,
                                                     const LoadProgress& progress) {
  auto parts = std::make_unique<EngineParts>();
  QUIRE_ASSIGN_OR_RETURN(parts->platform, make_platform(config, files.config));
  Platform& platform = *parts->platform;
  QUIRE_ASSIGN_OR_RETURN(EnginePlan plan,
                         plan_engine(config, files, platform, speculation.num_drafts));
  log_info("{}", describe(plan.memory, plan.kv));
  for (const std::string& line : summarize_services(plan)) log_info("[attention] {}", line);
  QUIRE_ASSIGN_OR_RETURN(parts->model, load_model(files.config, *files.weights, platform.ops(),
                                                  plan.limits, progress));
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         platform.make_workspace(plan.attention.workspace_bytes));
  QUIRE_ASSIGN_OR_RETURN(parts->kv_cache, KvCache::allocate(plan.attention.kv_groups,
                                                            plan.kv.num_blocks, platform.ops()));
  if (speculation.make_drafter) {
    QUIRE_ASSIGN_OR_RETURN(
        parts->drafter,
        speculation.make_drafter(platform, {.num_drafts = speculation.num_drafts,
                                            .max_num_seqs = plan.scheduler.max_num_seqs,
                                            .max_model_len = plan.limits.max_model_len,
                                            .vocab_size = files.config.vocab_size}));
  }
  parts->attention_plans = std::move(plan.attention.plans);
  QUIRE_ASSIGN_OR_RETURN(
      parts->runner, platform.make_runner({.model = parts->model.get(),
                                           .kv_cache = &parts->kv_cache,
                                           .attention = plan.attention.selectors,
                                           .plans = parts->attention_plans,
                                           .workspace = workspace,
                                           .drafter = parts->drafter.get(),
                                           .limits = plan.limits,
                                           .max_num_seqs = plan.scheduler.max_num_seqs,
                                           .max_num_rule_seqs = plan.scheduler.max_num_rule_seqs,
                                           .enforce_eager = config.enforce_eager,
                                           .reserve_bytes = plan.memory.reserve_bytes,
                                           .left_bytes = plan.kv.left_bytes}));
  parts->scheduler = plan.scheduler;
  parts->info = describe_model(files, plan);
  return parts;
}

}  // namespace quire
