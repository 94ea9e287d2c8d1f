#include "start/report.h"

#include <fmt/format.h>

#include <optional>

#include "base/log.h"
#include "base/setting_name.h"
#include "model/model_loader.h"
#include "start/model_files.h"
#include "start/setting_values.h"

namespace quire {
namespace {

// Describes tensor parallelism in one line; empty for one rank.
std::string describe_ranks(const Platform& platform) {
  const DeviceContext& first = *platform.contexts().front();
  if (first.parallel().size == 1) return "";
  return fmt::format(
      "[engine] {} ranks{} share the model, each with its own {}; the next line has the memory of "
      "one rank",
      first.parallel().size,
      platform.nodes() == nullptr ? "" : fmt::format(" on {} nodes", platform.nodes()->size()),
      first.device().kind == DeviceKind::kCpu ? "threads" : "GPU");
}

// Warns if cpu_activations bf16 has no effect: only BF16 weights, and FP8 weights, which become
// BF16 at load, use it.
void warn_of_activations(const EngineConfig& config, const ModelFiles& files,
                         const Device& device) {
  if (device.kind != DeviceKind::kCpu || input_rounding(config) != InputRounding::kBf16) return;
  const std::optional<WeightFormat>& format = files.config.format;
  if (has_blocks(*files.weights) || (format && is_integer(format->scheme))) {
    log_warning("[cpu] {} bf16 has no effect with quantized matrices, only with those in bf16",
                SettingName{"cpu_activations"});
  } else if (!format && files.config.dtype != DType::kBF16) {
    log_warning("[cpu] {} bf16 has no effect with weights in {}, only in bf16",
                SettingName{"cpu_activations"},
                dtype_name(files.config.dtype.value_or(DType::kF32)));
  }
}

std::string describe_memory(const PlannedReplica& replica) {
  const EnginePlan& plan = replica.plans.front();
  return describe(plan.memory_request, plan.memory_plan);
}

}  // namespace

void log_plans(const EngineConfig& config, std::span<const PlannedReplica> replicas,
               const ModelFiles& files) {
  const PlannedReplica& first = replicas.front();
  const EnginePlan& plan = first.plans.front();
  DeviceContext& context = *first.platform->contexts().front();
  if (replicas.size() > 1) {
    log_info(
        "[engine] {} replicas of the model, each with its own {}; the memory below is of the first "
        "replica",
        replicas.size(), context.device().kind == DeviceKind::kCpu ? "threads" : "GPUs");
  }
  const std::string ranks = describe_ranks(*first.platform);
  if (!ranks.empty()) log_info("{}", ranks);
  log_info("{}", describe_memory(first));
  const std::string threads = describe_threads(*first.platform);
  if (!threads.empty()) log_info("[threads] {}", threads);
  const std::string quantization =
      describe_quantization(files.config, *files.weights, context.ops(), plan.target.weights);
  if (!quantization.empty()) {
    log_info("[engine] weights: {}; all weights take {:.2f} GiB", quantization,
             static_cast<double>(total_weight_bytes(first.plans)) / double{1 << 30});
  }
  warn_of_activations(config, files, context.device());
  if (plan.sizes.limits.kv_dtype == DType::kF8E4M3) {
    const KvScaleCounts scales = count_kv_scales(files.config, *files.weights);
    log_info(
        "[engine] the FP8 KV cache has the checkpoint's scales in {} of {} layers, and {} in the "
        "others",
        scales.num_stored, scales.num_layers,
        plan.calculates_kv_scales ? "calculated ones" : "the scale 1");
  }
  const SelectionReport report = report_attention(plan.target.attention);
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

SelectionReport report_attention(const AttentionSetup& attention) {
  std::vector<std::string> names;
  for (const KvGroup& group : attention.kv_groups) {
    if (attention.kv_groups.size() == 1) {
      names.emplace_back();
    } else if (group.decode.window == 0) {
      names.push_back(fmt::format("{} layers without a window, ", group.layers.size()));
    } else {
      names.push_back(
          fmt::format("{} layers of window {}, ", group.layers.size(), group.decode.window));
    }
  }
  return report_selection(attention.selectors, names, attention.decode_keys);
}

int64_t total_weight_bytes(std::span<const EnginePlan> ranks) {
  int64_t total = 0;
  for (const EnginePlan& rank : ranks) total += rank.memory_request.weight_bytes;
  // The ranks of another node take the same memory as the ranks of this node.
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
