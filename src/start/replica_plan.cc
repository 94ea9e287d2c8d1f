#include "start/replica_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "model/families.h"
#include "start/agreement.h"
#include "start/draft_model.h"
#include "start/model_files.h"
#include "start/platform_choice.h"
#include "start/settings.h"

namespace quire {
namespace {

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

// Inputs of products are rounded to BF16 only with weights of this type, which FP8 becomes at load.
void warn_of_activations(const EngineConfig& config, const ModelFiles& files,
                         const Device& device) {
  if (device.kind != DeviceKind::kCpu || input_rounding(config) != InputRounding::kBf16) return;
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

int served_context(const PlannedReplica& replica) {
  return replica.engine.plans.front().sizes.limits.max_model_len;
}

std::string describe_memory(const PlannedReplica& replica) {
  const EnginePlan& plan = replica.engine.plans.front();
  return describe(plan.memory_request, plan.memory_plan);
}

}  // namespace

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

Result<std::vector<PlannedReplica>> plan_replicas(const EngineConfig& config,
                                                  const Speculation& speculation,
                                                  const ModelFiles& files,
                                                  const std::shared_ptr<Nodes>& nodes) {
  std::vector<PlannedReplica> replicas;
  for (int r = 0; r < config.data_parallel_size; ++r) {
    PlannedReplica& replica = replicas.emplace_back();
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
    const int expected = served_context(replicas.front());
    if (length == expected) continue;
    return resource_exhausted(
        fmt::format("[memory] replica {} has memory for a context of {} tokens, expected {} as in "
                    "replica 0; set `max_model_len` to at most {}",
                    r, length, expected, std::min(length, expected)));
  }
  return replicas;
}

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

int64_t total_weight_bytes(std::span<const EnginePlan> ranks) {
  int64_t total = 0;
  for (const EnginePlan& rank : ranks) total += rank.memory_request.weight_bytes;
  // The ranks of another node take as much as the ranks of this one.
  return total * ranks.front().sizes.limits.parallel.size / std::ssize(ranks);
}

std::string describe_threads(const Platform& platform) {
  const ThreadChoice* choice = platform.thread_choice();
  if (choice == nullptr) return "";
  const StepThreads steps = platform.step_threads();
  if (steps == StepThreads{}) return describe(*choice);
  return fmt::format("{}; as quire tune measured, decode runs on {} {} and prompts on {}",
                     describe(*choice), steps.decode, steps.decode == 1 ? "thread" : "threads",
                     steps.prefill);
}

}  // namespace quire
