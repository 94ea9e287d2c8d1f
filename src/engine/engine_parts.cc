#include "engine/engine_parts.h"

#include <utility>

#include "base/log.h"
#include "engine/model_files.h"
#include "model/families.h"

namespace quire {
namespace {

ModelInfo describe_model(const ModelFiles& files, const EnginePlan& plan) {
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = plan.sizes.limits.max_model_len;
  info.max_num_seqs = plan.sizes.max_num_seqs;
  info.block_size = plan.sizes.limits.page_size;
  info.weight_dtype = dtype_name(plan.dtype);
  info.kv_cache_dtype = dtype_name(plan.sizes.limits.kv_dtype);
  info.num_parameters = num_parameters(files.config);
  if (files.embedding) info.embedding_size = files.config.hidden_size;
  info.num_speculative_tokens = plan.sizes.limits.num_drafts;
  info.bos_token_id = files.config.bos_token_id;
  const std::vector<int>& eos_ids = files.generation.eos_token_ids;
  info.eos_token_ids = eos_ids.empty() ? files.config.eos_token_ids : eos_ids;
  return info;
}

}  // namespace

ModelInstance LoadedModel::instance() const {
  return {.model = model.get(),
          .kv_cache = &kv_cache,
          .attention = attention.selectors,
          .plans = attention.plans};
}

Result<LoadedModel> load_onto(DeviceContext& context, const ModelFiles& files, EnginePlan& plan,
                              const LoadProgress& progress) {
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  LoadedModel loaded;
  QUIRE_ASSIGN_OR_RETURN(loaded.model, load_model(files.config, *files.weights, context.ops(),
                                                  plan.sizes.limits, progress));
  QUIRE_ASSIGN_OR_RETURN(
      loaded.kv_cache,
      KvCache::allocate(plan.attention.kv_groups, plan.memory_plan.num_blocks, context.ops()));
  loaded.attention = std::move(plan.attention);
  return loaded;
}

Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, Drafter* drafter) {
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         context.workspace(target.attention.workspace_bytes));
  return context.make_runner({.instances = {target.instance()},
                              .sizes = plan.sizes,
                              .workspace = workspace,
                              .drafter = drafter,
                              .reserve_bytes = plan.memory_request.reserve_bytes,
                              .left_bytes = plan.memory_plan.left_bytes});
}

Result<std::unique_ptr<EngineParts>> assemble_engine(const EngineConfig& config,
                                                     const Speculation& speculation,
                                                     ModelFiles& files,
                                                     const LoadProgress& progress) {
  auto parts = std::make_unique<EngineParts>();
  QUIRE_ASSIGN_OR_RETURN(parts->platform, make_platform(config, files.config));
  QUIRE_ASSIGN_OR_RETURN(EnginePlan plan,
                         plan_engine(config, files, *parts->platform, speculation.num_drafts));
  log_info("{}", describe(plan.memory_request, plan.memory_plan));
  const SelectionReport report = report_attention(plan.attention);
  for (const std::string& line : report.summary) log_info("[attention] {}", line);
  parts->info = describe_model(files, plan);
  parts->info.attention_backend = report.backends;
  DeviceContext& context = *parts->platform->contexts().front();
  // A device that cannot draft refuses before the weights are read, which takes minutes.
  if (speculation.make_drafter) {
    QUIRE_ASSIGN_OR_RETURN(
        parts->drafter,
        speculation.make_drafter(context, {.num_drafts = speculation.num_drafts,
                                           .max_num_seqs = plan.sizes.max_num_seqs,
                                           .max_model_len = plan.sizes.limits.max_model_len,
                                           .vocab_size = plan.sizes.vocab_size}));
  }
  QUIRE_ASSIGN_OR_RETURN(parts->target, load_onto(context, files, plan, progress));
  QUIRE_ASSIGN_OR_RETURN(parts->runner,
                         make_runner(context, parts->target, plan, parts->drafter.get()));
  parts->scheduler = plan.scheduler;
  parts->scheduler.draft_ranges = speculation.draft_ranges;
  return parts;
}

}  // namespace quire
