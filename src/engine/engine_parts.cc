#include "engine/engine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "engine/contradictions.h"
#include "engine/kv_cache_probe.h"
#include "engine/model_files.h"
#include "engine/node_setup.h"
#include "engine/platform_choice.h"
#include "engine/replica_choice.h"
#include "kv/cache_dtype.h"
#include "model/decoder_config.h"
#include "model/families.h"
#include "platform/parallel_runner.h"

namespace quire {
namespace {

// The weights of all ranks: those of another node take as much as those of this one.
int64_t total_weight_bytes(std::span<const EnginePlan> ranks) {
  int64_t total = 0;
  for (const EnginePlan& rank : ranks) total += rank.memory_request.weight_bytes;
  return total * ranks.front().sizes.limits.parallel.size / std::ssize(ranks);
}

ModelInfo describe_model(const ModelFiles& files, std::span<const EnginePlan> ranks) {
  const EnginePlan& plan = ranks.front();
  ModelInfo info;
  info.name = files.name;
  info.architecture = files.config.architecture;
  info.vocab_size = files.config.vocab_size;
  info.max_model_len = plan.sizes.limits.max_model_len;
  info.max_num_seqs = plan.sizes.max_num_seqs;
  info.block_size = plan.sizes.limits.page_size;
  const std::optional<WeightFormat>& format = files.config.format;
  info.weight_dtype = format ? values_name(format->scheme) : dtype_name(plan.dtype);
  info.kv_cache_dtype = kv_cache_dtype_name(plan.sizes.limits.kv_dtype);
  info.num_parameters = num_parameters(files.config);
  info.weight_bytes = total_weight_bytes(ranks);
  if (files.embedding) info.embedding_size = files.config.hidden_size;
  info.num_speculative_tokens = plan.sizes.limits.num_drafts;
  info.bos_token_id = files.config.bos_token_id;
  const std::vector<int>& eos_ids = files.generation.eos_token_ids;
  info.eos_token_ids = eos_ids.empty() ? files.config.eos_token_ids : eos_ids;
  return info;
}

Status add_cache(DeviceContext& context, const MemoryPlan& memory, AttentionSetup& attention,
                 LoadedModel& model) {
  QUIRE_ASSIGN_OR_RETURN(model.kv_cache,
                         KvCache::allocate(attention.kv_groups, memory.num_blocks, context.ops()));
  model.attention = std::move(attention);
  return {};
}

// Loads `draft` into parts.draft and makes the drafter that runs it.
Status add_model_drafter(DeviceContext& context, DraftModel& draft, EnginePlan& plan,
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
  QUIRE_RETURN_IF_ERROR(add_cache(context, plan.memory_plan, plan.draft->attention, loaded));
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         context.workspace(parts.target.attention.workspace_bytes));
  QUIRE_ASSIGN_OR_RETURN(parts.drafter,
                         context.make_model_drafter({.instance = loaded.instance(),
                                                     .target = parts.target.model.get(),
                                                     .limits = plan.draft->limits,
                                                     .windows = plan.sizes.windows,
                                                     .workspace = workspace},
                                                    drafter_limits(plan.sizes)));
  return {};
}

// Calls load(rank) for every rank, each on a thread of its own: while they load, ranks may wait for
// each other. Returns the first error.
Status on_every_rank(const Platform& platform, const std::function<Status(size_t rank)>& load) {
  const auto contexts = platform.contexts();
  if (contexts.front()->parallel().size == 1) return load(0);
  const auto load_and_join = [&](size_t rank) {
    Status status;
    try {
      status = load(rank);
    } catch (...) {  // most likely std::bad_alloc
      status = make_exception_status([](const char* reason) {
        return resource_exhausted(fmt::format("[engine] a rank cannot start; {}", reason));
      });
    }
    return contexts[rank]->join_ranks(status);
  };
  std::vector<std::jthread> threads;
  try {
    for (size_t rank = 1; rank < contexts.size(); ++rank) threads.emplace_back(load_and_join, rank);
  } catch (const std::system_error& error) {  // the ranks that have a thread must not wait
    return contexts.front()->join_ranks(
        resource_exhausted(fmt::format("[engine] a rank cannot start; {}", text_of(error))));
  }
  return load_and_join(0);
}

// Tensor parallelism in one line; empty for one rank.
std::string describe_ranks(const Platform& platform) {
  const DeviceContext& first = *platform.contexts().front();
  if (first.parallel().size == 1) return "";
  return fmt::format(
      "[engine] {} ranks{} share the model, each with {} of its own; the memory below "
      "is that of one rank",
      first.parallel().size,
      platform.nodes() == nullptr ? "" : fmt::format(" on {} nodes", platform.nodes()->size()),
      first.device().kind == DeviceKind::kCpu ? "threads" : "a GPU");
}

// The runner of all ranks, or on a node other than 0 that of its own.
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

// Inputs of products are rounded to BF16 only with weights of this type, which FP8 becomes at load.
void warn_of_activations(const EngineConfig& config, const ModelFiles& files,
                         const Device& device) {
  if (device.kind != DeviceKind::kCpu || config.cpu_activations != "bf16") return;
  const std::optional<WeightFormat>& format = files.config.format;
  if (has_blocks(*files.weights) || (format && is_integer(format->scheme))) {
    log_warning(
        "[cpu] `cpu_activations` bf16 has no effect with quantized matrices, only with those in "
        "bf16");
  } else if (!format && files.config.dtype != DType::kBF16) {
    log_warning("[cpu] `cpu_activations` bf16 has no effect with weights in {}, only in bf16",
                dtype_name(files.config.dtype.value_or(DType::kF32)));
  }
}

// Calls load(r) for every replica, each on a thread of its own, and waits for all. Returns the
// first error.
Status on_every_replica(size_t num_replicas, const std::function<Status(size_t replica)>& load) {
  if (num_replicas == 1) return load(0);
  std::vector<Status> loaded(num_replicas);
  const auto load_guarded = [&](size_t replica) {
    try {
      loaded[replica] = load(replica);
    } catch (...) {  // most likely std::bad_alloc
      loaded[replica] = make_exception_status([](const char* reason) {
        return resource_exhausted(fmt::format("[engine] cannot start; {}", reason));
      });
    }
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

int served_context(const PlannedReplica& replica) {
  return replica.engine.plans.front().sizes.limits.max_model_len;
}

std::string describe_memory(const PlannedReplica& replica) {
  const EnginePlan& plan = replica.engine.plans.front();
  return describe(plan.memory_request, plan.memory_plan);
}

// Logs the plan of the first replica, and what is different in the others.
void log_plans(const EngineConfig& config, std::span<const PlannedReplica> replicas,
               const ModelFiles& files) {
  const PlannedReplica& first = replicas.front();
  const EnginePlan& plan = first.engine.plans.front();
  DeviceContext& context = *first.platform->contexts().front();
  if (replicas.size() > 1) {
    log_info(
        "[engine] {} replicas of the model, each with {} of its own; the memory below is that of "
        "the first one",
        replicas.size(), context.device().kind == DeviceKind::kCpu ? "threads" : "GPUs");
  }
  const std::string ranks = describe_ranks(*first.platform);
  if (!ranks.empty()) log_info("{}", ranks);
  log_info("{}", describe_memory(first));
  const std::string threads = describe_threads(*first.platform);
  if (!threads.empty()) log_info("[threads] {}", threads);
  const std::string quantization =
      describe_quantization(files.config, *files.weights, context.ops(), plan.weights);
  if (!quantization.empty()) {
    log_info("[engine] weights: {}; all weights take {:.2f} GiB", quantization,
             static_cast<double>(total_weight_bytes(first.engine.plans)) / double{1 << 30});
  }
  warn_of_activations(config, files, context.device());
  if (plan.sizes.limits.kv_dtype == DType::kF8E4M3) {
    log_info(
        "[engine] the FP8 KV cache has the checkpoint's scales in {} of {} layers, and {} in the "
        "others",
        num_kv_scales(*files.weights), files.config.num_layers,
        plan.calculates_kv_scales ? "calculated ones" : "the scale 1");
  }
  const SelectionReport report = report_attention(plan.attention);
  for (const std::string& line : report.summary) log_info("[attention] {}", line);
  if (plan.draft) {
    const SelectionReport of_draft = report_attention(plan.draft->attention);
    for (const std::string& line : of_draft.summary) log_info("[attention] drafter: {}", line);
  }
  for (size_t r = 1; r < replicas.size(); ++r) {
    const std::string memory = describe_memory(replicas[r]);
    if (memory != describe_memory(first)) log_info("[engine] replica {}: {}", r, memory);
  }
}

// Loads what was planned into parts, which has its nodes.
Status load_replica(const EngineConfig& config, PlannedReplica&& replica,
                    const Speculation& speculation, const ModelFiles& files,
                    const LoadProgress& progress, EngineParts* parts) {
  parts->platform = std::move(replica.platform);
  PlannedEngine& planned = replica.engine;
  const EnginePlan& plan = planned.plans.front();
  const auto contexts = parts->platform->contexts();
  parts->info = describe_model(files, planned.plans);
  parts->info.on_gpu = contexts.front()->device().kind != DeviceKind::kCpu;
  parts->info.attention_backend = report_attention(plan.attention).backends;
  parts->info.has_synthetic_acceptance = speculation.verification.is_synthetic();
  parts->info.data_parallel_size = config.data_parallel_size;
  parts->info.enable_prefix_caching = config.enable_prefix_caching;
  parts->info.calculate_kv_scales = config.calculate_kv_scales;
  parts->info.gpu_memory_utilization = config.gpu_memory_utilization;
  parts->num_kv_tokens = plan.memory_plan.num_kv_tokens;
  parts->scheduler = plan.scheduler;
  parts->scheduler.draft_ranges = speculation.draft_ranges;

  parts->ranks.resize(contexts.size());
  std::vector<RankRunner> runners(contexts.size());
  const auto load = [&](size_t rank) -> Status {
    RankParts& own = parts->ranks[rank];
    EnginePlan& own_plan = planned.plans[rank];
    DeviceContext& device = *contexts[rank];
    // A drafter that cannot be made fails before the weights are read, which takes minutes.
    if (speculation.make_drafter) {
      QUIRE_ASSIGN_OR_RETURN(own.drafter,
                             speculation.make_drafter(device, drafter_limits(own_plan.sizes)));
    }
    QUIRE_ASSIGN_OR_RETURN(
        own.target, load_onto(device, files, own_plan, rank == 0 ? progress : LoadProgress()));
    if (planned.draft) {
      QUIRE_RETURN_IF_ERROR(add_model_drafter(device, *planned.draft, own_plan, own));
    }
    // A node that has failed would leave the others waiting in the measurements below.
    if (parts->nodes != nullptr) QUIRE_RETURN_IF_ERROR(parts->nodes->status());
    runners[rank].context = &device;
    QUIRE_ASSIGN_OR_RETURN(
        runners[rank].runner,
        make_runner(device, own.target, own_plan, own.drafter.get(), speculation.verification));
    return {};
  };
  QUIRE_RETURN_IF_ERROR(on_every_rank(*parts->platform, load));
  parts->platform->keep_packed_weights();
  parts->runner = join_runners(config, parts->nodes, std::move(runners));
  return {};
}

}  // namespace

std::string describe_threads(const Platform& platform) {
  const ThreadChoice* choice = platform.thread_choice();
  if (choice == nullptr) return "";
  const StepThreads steps = platform.step_threads();
  if (steps == StepThreads{}) return describe(*choice);
  return fmt::format("{}; as quire tune measured, decode runs on {} {} and prompts on {}",
                     describe(*choice), steps.decode, steps.decode == 1 ? "thread" : "threads",
                     steps.prefill);
}

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
  const LoadOptions options = {.progress = progress, .expanded = &plan.weights.expanded};
  QUIRE_ASSIGN_OR_RETURN(loaded.model, load_model(files.config, *files.weights, context.ops(),
                                                  plan.sizes.limits, options));
  std::optional<std::vector<PositionLogprobs>> expected;
  if (plan.calculates_kv_scales) {
    QUIRE_ASSIGN_OR_RETURN(expected, calculate_kv_scales(context, files, plan, *loaded.model));
  }
  if (is_quantized_cache(plan.sizes.limits.kv_dtype)) {
    QUIRE_RETURN_IF_ERROR(check_kv_cache(context, files, plan, *loaded.model, std::move(expected)));
  }
  QUIRE_RETURN_IF_ERROR(add_cache(context, plan.memory_plan, plan.attention, loaded));
  return loaded;
}

Result<std::unique_ptr<Runner>> make_runner(DeviceContext& context, const LoadedModel& target,
                                            const EnginePlan& plan, Drafter* drafter,
                                            const Verification& verification) {
  QUIRE_ASSIGN_OR_RETURN(const std::span<std::byte> workspace,
                         context.workspace(target.attention.workspace_bytes));
  return context.make_runner({.instances = {target.instance()},
                              .sizes = plan.sizes,
                              .workspace = workspace,
                              .drafter = drafter,
                              .verification = verification,
                              .reserve_bytes = plan.memory_request.reserve_bytes,
                              .left_bytes = plan.memory_plan.left_bytes});
}

Result<PlannedEngine> plan_with_drafter(const EngineConfig& config, const Speculation& speculation,
                                        const ModelFiles& files, const Platform& platform) {
  if (platform.contexts().front()->device().kind != DeviceKind::kCpu) {
    QUIRE_RETURN_IF_ERROR(refuse_unpadded_drafts(speculation));
  }
  std::unique_ptr<DraftModel> draft;
  if (speculation.draft_model) {
    QUIRE_ASSIGN_OR_RETURN(draft, DraftModel::open(config, *speculation.draft_model, files.config));
  }
  Result<std::vector<EnginePlan>> plans = plan_ranks(
      config, files, platform,
      {.num_drafts = speculation.num_drafts,
       .model = draft.get(),
       .has_probs = speculation.verification.samples_drafts,
       .by_lookup = speculation.by_lookup,
       .is_adaptive = speculation.verification.is_adaptive || !speculation.draft_ranges.empty()});
  if (plans.ok()) return PlannedEngine{.plans = std::move(*plans), .draft = std::move(draft)};
  const Status error = plans.status();
  if (draft == nullptr || error.code() != StatusCode::kResourceExhausted) return error;
  return resource_exhausted(
      fmt::format("{}; the plan includes the drafter {}; use a smaller one, or leave out "
                  "`speculative_config`",
                  error.message(), draft->name()));
}

Status check_replicas(const EngineConfig& config) {
  if (config.data_parallel_size < 1 || config.data_parallel_size > kMaxReplicas) {
    return invalid_argument(fmt::format("[engine] data_parallel_size: must be 1 to {}, got {}",
                                        kMaxReplicas, config.data_parallel_size));
  }
  if (config.data_parallel_size == 1 || config.nnodes == 1) return {};
  return unimplemented(fmt::format(
      "[engine] data_parallel_size: got {} on {} nodes, expected 1: the replicas of an "
      "engine are on one machine; start an engine per group of machines, behind a router",
      config.data_parallel_size, config.nnodes == 0 ? "several" : fmt::to_string(config.nnodes)));
}

namespace {

Status plan_all(const EngineConfig& config, const Speculation& speculation, const ModelFiles& files,
                const std::shared_ptr<Nodes>& nodes, std::vector<PlannedReplica>* replicas) {
  for (int r = 0; r < config.data_parallel_size; ++r) {
    PlannedReplica& replica = replicas->emplace_back();
    QUIRE_ASSIGN_OR_RETURN(
        replica.platform,
        make_platform(config, files, nodes, {.rank = r, .size = config.data_parallel_size}));
    const Device& device = replica.platform->contexts().front()->device();
    QUIRE_RETURN_IF_ERROR(check_same(nodes.get(), "device", device.name));
    QUIRE_ASSIGN_OR_RETURN(replica.engine,
                           plan_with_drafter(config, speculation, files, *replica.platform));
    QUIRE_RETURN_IF_ERROR(
        check_same_plan(nodes.get(), replica.engine.plans.front(), replica.engine.draft.get()));
    if (nodes != nullptr && device.kind == DeviceKind::kCpu) {
      const int num_tokens = replica.engine.plans.front().scheduler.max_num_batched_tokens;
      QUIRE_RETURN_IF_ERROR(
          check_step_message(num_tokens, files.config.hidden_size, config.tensor_parallel_size));
    }
    const int length = served_context(replica);
    const int expected = served_context(replicas->front());
    if (length == expected) continue;
    return resource_exhausted(
        fmt::format("[memory] replica {} has memory for a context of {} tokens, expected {} as in "
                    "replica 0; set `max_model_len` to at most {}",
                    r, length, expected, std::min(length, expected)));
  }
  return {};
}

}  // namespace

Result<std::vector<PlannedReplica>> plan_replicas(const EngineConfig& config,
                                                  const Speculation& speculation,
                                                  const ModelFiles& files) {
  QUIRE_RETURN_IF_ERROR(check_replicas(config));
  std::vector<PlannedReplica> replicas;
  QUIRE_RETURN_IF_ERROR(plan_all(config, speculation, files, nullptr, &replicas));
  return replicas;
}

Result<std::vector<std::unique_ptr<EngineParts>>> assemble_replicas(const EngineConfig& config,
                                                                    const Speculation& speculation,
                                                                    ModelFiles& files,
                                                                    const LoadProgress& progress) {
  QUIRE_RETURN_IF_ERROR(check_replicas(config));
  if (config.nnodes > 1) {  // before a wait of up to minutes for the other nodes
    QUIRE_RETURN_IF_ERROR(
        check_shards(files.config, {.rank = 0, .size = config.tensor_parallel_size}));
    QUIRE_RETURN_IF_ERROR(check_devices(config));
  }
  QUIRE_ASSIGN_OR_RETURN(const std::shared_ptr<Nodes> nodes, connect_nodes(config, files));
  // Destroyed after nodes->fail(), so that an error reaches the other nodes first.
  std::vector<PlannedReplica> planned;
  std::vector<std::unique_ptr<EngineParts>> replicas;
  const auto load = [&](size_t r) {
    return load_replica(config, std::move(planned[r]), speculation, files,
                        r == 0 ? progress : LoadProgress(), replicas[r].get());
  };
  const auto assemble = [&]() -> Status {
    QUIRE_RETURN_IF_ERROR(plan_all(config, speculation, files, nodes, &planned));
    files.weights = stop_with_nodes(std::move(files.weights), nodes);
    for (const PlannedReplica& replica : planned) {
      if (replica.engine.draft) replica.engine.draft->stop_with(nodes);
    }
    log_plans(config, planned, files);
    for (size_t r = 0; r < planned.size(); ++r) {
      replicas.push_back(std::make_unique<EngineParts>());
      replicas.back()->nodes = nodes;
    }
    return on_every_replica(planned.size(), load);
  };
  Status status;
  try {
    status = assemble();
  } catch (...) {  // most likely std::bad_alloc; otherwise the other nodes would not learn why
    status = make_exception_status([](const char* reason) {
      return resource_exhausted(fmt::format("[engine] cannot start; {}", reason));
    });
  }
  if (status.ok()) return replicas;
  if (nodes == nullptr) return status;
  nodes->fail(status);
  return nodes->status();
}

}  // namespace quire
