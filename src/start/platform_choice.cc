#include "start/platform_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/machine.h"
#include "base/setting_name.h"
#include "start/build_identity.h"
#include "start/node_agreement.h"
#include "start/node_setup.h"
#include "start/packed_file.h"
#include "start/setting_values.h"
#include "start/settings.h"
#include "start/tuned_threads.h"

namespace quire {
namespace {

MeasuredChoices::Use use_of_choices(const EngineConfig& config) {
  if (config.measure == "again") return MeasuredChoices::Use::kAgain;
  return config.measure == "off" ? MeasuredChoices::Use::kNothing : MeasuredChoices::Use::kAuto;
}

// Makes a platform with the default threads. Unless the configuration sets a number, steps run on
// the numbers of threads that `quire tune` measured, and the pool grows to the largest of them.
Result<std::unique_ptr<Platform>> make_tuned_cpu_platform(const EngineConfig& config,
                                                          const ModelFiles& files,
                                                          PlatformConfig platform) {
  QUIRE_RETURN_IF_ERROR(check_same(platform.nodes.get(), "kind of device", "cpu"));
  ThreadOptions options = thread_options(config);
  const MachineCpus cpus = read_machine_cpus();
  platform.threads = choose_threads(cpus, options);
  const bool is_measured = config.num_threads == 0 && config.tuning_table != "builtin";
  if (platform.choices == nullptr) platform.choices = open_choices(config, cpu_model(), "");
  const auto tuned = is_measured ? find_tuned_threads(threads_key(platform.threads, config, files),
                                                      *platform.choices)
                                 : std::nullopt;
  if (tuned && config.tensor_parallel_size > 1) {
    log_info(
        "[threads] the results of quire tune are for one rank, and are not used with "
        "{} {}",
        SettingName{"tensor_parallel_size"}, config.tensor_parallel_size);
  } else if (tuned) {
    const auto num_threads = static_cast<int>(platform.threads.places.size());
    options.num_threads = std::max({num_threads, tuned->decode, tuned->prefill});
    platform.threads = choose_threads(cpus, options);
    platform.step_threads = *tuned;
  }
  QUIRE_ASSIGN_OR_RETURN(platform.packed_weights, open_packed_weights(config, files, platform));
  return make_cpu_platform(platform);
}

// Fails if a GPU is chosen and this node has fewer GPUs than the replicas have ranks on it.
Result<DeviceKind> choose_device(const EngineConfig& config, const Parallel& replica) {
  const std::optional<DeviceKind> forced = forced_device(config);
  if (forced == DeviceKind::kCpu) return DeviceKind::kCpu;
  Status gpu = cuda_status();
  // With too few GPUs, the start fails instead of choosing the CPU.
  if (gpu.ok()) {
    gpu = cuda_status(num_local_ranks(config) * replica.size - 1);
    QUIRE_RETURN_IF_ERROR(gpu);
  }
  if (gpu.ok() || forced == DeviceKind::kCuda) QUIRE_RETURN_IF_ERROR(refuse_cpu_cache(config));
  if (gpu.ok()) return DeviceKind::kCuda;
  if (forced == DeviceKind::kCuda) {
    return Status(gpu.code(),
                  fmt::format("{}; to run on the CPU, set `device` to cpu", gpu.message()));
  }
  QUIRE_RETURN_IF_ERROR(refuse_gpu_backends(config, gpu));
  log_debug("{}", gpu.message());
  return DeviceKind::kCpu;
}

}  // namespace

std::shared_ptr<MeasuredChoices> open_choices(const EngineConfig& config, std::string_view device,
                                              std::string_view driver) {
  return std::make_shared<MeasuredChoices>(
      MeasuredChoices::Config{.file = choices_file(device, driver),
                              .build = std::string(build_identity()),
                              .use = use_of_choices(config)});
}

Status check_devices(const EngineConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(const DeviceKind kind, choose_device(config, {}));
  if (kind != DeviceKind::kCpu) return {};
  return check_rank_threads(static_cast<size_t>(num_local_ranks(config)), 1,
                            choose_threads(thread_options(config)).places.size());
}

Result<std::unique_ptr<Platform>> make_platform(const EngineConfig& config, const ModelFiles& files,
                                                std::shared_ptr<Nodes> nodes,
                                                const Parallel& replica,
                                                std::shared_ptr<MeasuredChoices> choices) {
  QUIRE_RETURN_IF_ERROR(check_settings(config));
  if (config.nnodes != 1 && nodes == nullptr) {
    return unimplemented(
        fmt::format("[engine] `nnodes`: got {}, expected 1 for a command that connects no nodes; "
                    "run quire serve on all nodes, or quire doctor to check this one",
                    config.nnodes == 0 ? "auto" : fmt::to_string(config.nnodes)));
  }
  std::vector<int> devices(static_cast<size_t>(num_local_ranks(config)));
  std::iota(devices.begin(), devices.end(), 0);
  PlatformConfig platform = {.devices = std::move(devices),
                             .nodes = nodes,
                             .replica = replica,
                             .activation_dtype = weight_dtype(config, files.config.dtype),
                             .rounding = input_rounding(config),
                             .gpu_memory_utilization = config.gpu_memory_utilization,
                             .choices = std::move(choices)};
  QUIRE_ASSIGN_OR_RETURN(const DeviceKind kind, choose_device(config, replica));
  if (kind == DeviceKind::kCpu) return make_tuned_cpu_platform(config, files, std::move(platform));
  QUIRE_RETURN_IF_ERROR(check_same(nodes.get(), "kind of device", "cuda"));
  for (int& device : platform.devices) device += num_local_ranks(config) * replica.rank;
  if (platform.choices == nullptr) {
    QUIRE_ASSIGN_OR_RETURN(const Device gpu, find_gpu(platform.devices.front()));
    platform.choices = open_choices(config, gpu.name, gpu_driver_version());
  }
  return make_cuda_platform(platform);
}

}  // namespace quire
