#include "start/setting_values.h"

namespace quire {

bool uses_dummy_weights(const EngineConfig& config) {
  return config.load_format == "dummy";
}

bool quantizes_at_load(const EngineConfig& config) {
  return config.quantization == "fp8";
}

std::optional<DType> forced_dtype(const EngineConfig& config) {
  return config.dtype == "auto" ? std::nullopt : parse_dtype(config.dtype);
}

std::optional<DType> forced_kv_dtype(const EngineConfig& config) {
  return config.kv_cache_dtype == "auto" ? std::nullopt : parse_dtype(config.kv_cache_dtype);
}

std::optional<DeviceKind> forced_device(const EngineConfig& config) {
  if (config.device == "auto") return std::nullopt;
  return config.device == "cpu" ? DeviceKind::kCpu : DeviceKind::kCuda;
}

ThreadOptions thread_options(const EngineConfig& config) {
  ThreadOptions options = {.num_threads = config.num_threads};
  if (config.cpu_cores == "all") options.cores = CpuCores::kAll;
  if (config.cpu_pinning == "on") options.pinning = CpuPinning::kOn;
  if (config.cpu_pinning == "off") options.pinning = CpuPinning::kOff;
  return options;
}

InputRounding input_rounding(const EngineConfig& config) {
  if (config.cpu_activations == "bf16") return InputRounding::kBf16;
  return config.cpu_activations == "int8" ? InputRounding::kInt8 : InputRounding::kNone;
}

DType weight_dtype(const EngineConfig& config, std::optional<DType> of_checkpoint) {
  return forced_dtype(config).value_or(of_checkpoint.value_or(DType::kF32));
}

}  // namespace quire
