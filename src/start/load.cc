#include "start/load.h"

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "kv/cache_dtype.h"
#include "model/model_loader.h"
#include "model/weights.h"
#include "platform/parallel_runner.h"
#include "start/draft_model.h"
#include "start/kv_cache_probe.h"
#include "start/model_files.h"
#include "start/report.h"

namespace quire {
namespace {

// For example "bf16", "fp8_e4m3" or "Q4_1, Q8_0".
std::string describe_weight_types(const ModelFiles& files, DType dtype) {
  std::string blocks = block_type_names(*files.weights);
  if (!blocks.empty()) return blocks;
  const std::optional<WeightFormat>& format = files.config.format;
  return std::string(format ? values_name(format->scheme) : dtype_name(dtype));
}

ModelInfo describe_model(const EngineConfig& config, const Speculation& speculation,
                         const ModelFiles& files, const PlannedReplica& replica) {
  const EnginePlan& plan = replica.plans.front();
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = plan.sizes.limits.max_model_len;
  info.max_num_seqs = plan.sizes.max_num_seqs;
  info.block_size = plan.sizes.limits.page_size;
  info.file_format = files.file_format;
  info.weight_dtype = describe_weight_types(files, plan.dtype);
  info.gguf_mixture = files.gguf_mixture;
  info.kv_cache_dtype = kv_cache_dtype_name(plan.sizes.limits.kv_dtype);
  info.num_parameters = num_parameters(files.config);
  info.weight_bytes = total_weight_bytes(replica.plans);
  if (files.embedding) info.embedding_size = files.config.hidden_size;
  info.num_speculative_tokens = plan.sizes.limits.num_drafts;
  info.speculative_method = speculation.method;
  info.bos_token_id = files.config.bos_token_id;
  const std::vector<int>& eos_ids = files.generation.eos_token_ids;
  info.eos_token_ids = eos_ids.empty() ? files.config.eos_token_ids : eos_ids;
  info.on_gpu = replica.platform->contexts().front()->device().kind != DeviceKind::kCpu;
  info.attention_backend = report_attention(plan.target.attention).backends;
  info.has_states = !plan.target.attention.states.layers.empty();
  info.has_synthetic_acceptance = speculation.verification.is_synthetic();
  info.data_parallel_size = config.data_parallel_size;
  info.enable_prefix_caching = config.enable_prefix_caching;
  info.calculate_kv_scales = config.calculate_kv_scales;
  info.gpu_memory_utilization = config.gpu_memory_utilization;
  return info;
}

Status add_cache(DeviceContext& context, const MemoryPlan& memory, AttentionSetup& attention,
                 LoadedModel& model) {
  QUIRE_ASSIGN_OR_RETURN(model.kv_cache, KvCache::allocate(attention.kv_groups, attention.states,
                                                           memory.num_blocks, context.ops()));
  model.attention = std::move(attention);
  return {};
}

// Loads `draft` into parts.draft, for the target of `parts`.
Result<DraftModelParts> load_draft(DeviceContext& context, DraftModel& draft, EnginePlan& plan,
                                   RankParts& parts) {
  LoadedModel& loaded = parts.draft;
  Result<std::unique_ptr<Model>> model =
      draft.load(*parts.target.model, context.ops(), plan.draft->limits,
                 {.expanded = &plan.draft->weights.expanded});
  if (!model.ok()) {
    return Status(model.status().code(),
                  fmt::format("{} (in the drafter, {})", model.status().message(), draft.name()));
  }
  loaded.model = std::move(*model);
  if (draft.reads_target_cache()) {
    loaded.kv_cache = KvCache::of_target(plan.draft->attention.kv_groups, parts.target.kv_cache,
                                         parts.target.attention.kv_groups);
    loaded.attention = std::move(plan.draft->attention);
  } else {
    QUIRE_RETURN_IF_ERROR(add_cache(context, plan.memory_plan, plan.draft->attention, loaded));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         context.workspace(parts.target.attention.workspace_bytes));
  return DraftModelParts{.instance = loaded.instance(),
                         .target = parts.target.model.get(),
                         .limits = plan.draft->limits,
                         .windows = plan.sizes.windows,
                         .workspace = workspace};
}

// Calls load(rank) for every rank, each on its own thread, because ranks may wait for each other.
// Returns the first error.
Status on_every_rank(const Platform& platform, const std::function<Status(size_t rank)>& load) {
  const auto contexts = platform.contexts();
  if (contexts.front()->parallel().size == 1) return load(0);
  const auto load_and_join = [&](size_t rank) {
    return contexts[rank]->join_ranks(
        guarded_status("[engine] a rank cannot start", [&] { return load(rank); }));
  };
  std::vector<std::jthread> threads;
  try {
    for (size_t rank = 1; rank < contexts.size(); ++rank) threads.emplace_back(load_and_join, rank);
  } catch (const std::system_error& error) {  // ends the wait of the ranks that have a thread
    return contexts.front()->join_ranks(
        resource_exhausted(fmt::format("[engine] a rank cannot start; {}", text_of(error))));
  }
  return load_and_join(0);
}

// Returns a runner of all ranks on node 0, and of only the node's own ranks on other nodes.
std::unique_ptr<Runner> join_runners(const EngineConfig& config,
                                     const std::shared_ptr<Nodes>& nodes,
                                     std::vector<RankRunner> runners) {
  if (nodes != nullptr && nodes->node() > 0) {
    return runners.size() == 1 ? std::move(runners.front().runner)
                               : make_parallel_runner(std::move(runners));
  }
  if (runners.size() == 1 && nodes == nullptr) return std::move(runners.front().runner);
  return make_parallel_runner(
      std::move(runners),
      {.nodes = nodes, .step_timeout = std::chrono::seconds(config.rank_timeout)});
}

// Calls load(r) for every replica, each on its own thread, and waits for all. Returns the first
// error.
Status on_every_replica(size_t num_replicas, const std::function<Status(size_t replica)>& load) {
  if (num_replicas == 1) return load(0);
  std::vector<Status> loaded(num_replicas);
  const auto load_guarded = [&](size_t replica) {
    loaded[replica] = guarded_status("[engine] cannot start", [&] { return load(replica); });
  };
  {
    std::vector<std::jthread> threads;
    for (size_t r = 1; r < num_replicas; ++r) threads.emplace_back(load_guarded, r);
    load_guarded(0);
  }
  for (size_t r = 0; r < num_replicas; ++r) {
    if (loaded[r].ok()) continue;
    return Status(loaded[r].code(), fmt::format("{} (in replica {})", loaded[r].message(), r));
  }
  return {};
}

// Loads one planned replica into `parts`, whose `nodes` is already set.
Status load_replica(const EngineConfig& config, PlannedReplica&& replica,
                    const Speculation& speculation, const ModelFiles& files,
                    const LoadProgress& progress, ReplicaParts& parts) {
  parts.info = describe_model(config, speculation, files, replica);
  parts.platform = std::move(replica.platform);
  const EnginePlan& plan = replica.plans.front();
  parts.num_kv_tokens = plan.memory_plan.num_kv_tokens;
  parts.scheduler = plan.scheduler;
  parts.scheduler.draft_ranges = speculation.draft_ranges;

  const auto contexts = parts.platform->contexts();
  parts.ranks.resize(contexts.size());
  std::vector<RankRunner> runners(contexts.size());
  const auto load = [&](size_t rank) -> Status {
    RankParts& own = parts.ranks[rank];
    EnginePlan& own_plan = replica.plans[rank];
    DeviceContext& device = *contexts[rank];
    DraftSource drafts;
    if (speculation.lookup) drafts = *speculation.lookup;
    if (speculation.make_drafter) {
      QUIRE_ASSIGN_OR_RETURN(drafts,
                             speculation.make_drafter(device, drafter_limits(own_plan.sizes)));
    }
    QUIRE_ASSIGN_OR_RETURN(
        own.target, load_onto(device, files, own_plan, rank == 0 ? progress : LoadProgress()));
    if (replica.draft) {
      QUIRE_ASSIGN_OR_RETURN(drafts, load_draft(device, *replica.draft, own_plan, own));
    }
    // Otherwise this node would wait in the measurements below for a node that has failed.
    if (parts.nodes != nullptr) QUIRE_RETURN_IF_ERROR(parts.nodes->status());
    runners[rank].context = &device;
    QUIRE_ASSIGN_OR_RETURN(runners[rank].runner, make_runner(device, own.target, own_plan, drafts,
                                                             speculation.verification));
    return {};
  };
  QUIRE_RETURN_IF_ERROR(on_every_rank(*parts.platform, load));
  parts.platform->keep_packed_weights();
  parts.runner = join_runners(config, parts.nodes, std::move(runners));
  return {};
}

}  // namespace

Result<LoadedModel> load_onto(DeviceContext& context, const ModelFiles& files, EnginePlan& plan,
                              const LoadProgress& progress) {
  QUIRE_RETURN_IF_ERROR(context.bind_thread());
  LoadedModel loaded;
  const LoadOptions options = {.progress = progress, .expanded = &plan.target.weights.expanded};
  QUIRE_ASSIGN_OR_RETURN(loaded.model, load_model(files.config, *files.weights, context.ops(),
                                                  plan.sizes.limits, options));
  if (is_quantized_cache(plan.sizes.limits.kv_dtype)) {
    QUIRE_RETURN_IF_ERROR(probe_kv_cache(context, files, plan, *loaded.model));
  }
  QUIRE_RETURN_IF_ERROR(add_cache(context, plan.memory_plan, plan.target.attention, loaded));
  return loaded;
}

Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, const DraftSource& drafts,
                                            const Verification& verification) {
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         context.workspace(target.attention.workspace_bytes));
  // A drafter that the caller made has no key, so its times are not kept.
  const bool has_key = !std::holds_alternative<std::shared_ptr<Drafter>>(drafts);
  return context.make_runner({.instance = target.instance(),
                              .sizes = plan.sizes,
                              .workspace = workspace,
                              .shape_key = has_key ? plan.shape_key : std::string(),
                              .drafts = drafts,
                              .verification = verification,
                              .reserve_bytes = plan.memory_request.reserve_bytes,
                              .left_bytes = plan.memory_plan.left_bytes});
}

Status load_replicas(const EngineConfig& config, const Speculation& speculation,
                     const ModelFiles& files, std::span<PlannedReplica> planned,
                     const LoadProgress& progress,
                     std::span<const std::unique_ptr<ReplicaParts>> replicas) {
  return on_every_replica(planned.size(), [&](size_t r) {
    return load_replica(config, std::move(planned[r]), speculation, files,
                        r == 0 ? progress : LoadProgress(), *replicas[r]);
  });
}

}  // namespace quire
