#include "engine/contradictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "attn/selection.h"
#include "engine/model_files.h"
#include "tensor/dtype.h"

namespace quire {
namespace {

// FP8 matrices are no integers, and a checkpoint of integers is not quantized again.
Status check_activations(const EngineConfig& config) {
  if (config.quantization != "fp8" || config.cpu_activations != "int8") return {};
  return invalid_argument(
      "[engine] cpu_activations: got int8 with `quantization` fp8, whose matrices are no integers, "
      "expected f32 or bf16");
}

}  // namespace

std::vector<Status> find_contradictions(const EngineConfig& config) {
  std::vector<Status> found = {check_tokenizer(config), check_calculated_scales(config),
                               check_activations(config)};
  const Result<Speculation> speculation = read_speculation(config.speculative_config);
  if (speculation.ok() && config.max_num_batched_tokens > 0) {
    found.push_back(check_step_tokens(config.max_num_batched_tokens, speculation->num_drafts));
  }
  if (config.device == "cpu") {
    found.push_back(refuse_gpu_backends(config, invalid_argument("`device` is cpu")));
  }
  if (config.device == "cuda") {
    found.push_back(refuse_cpu_cache(config));
    if (speculation.ok()) found.push_back(refuse_unpadded_drafts(*speculation));
  }
  std::erase_if(found, [](const Status& status) { return status.ok(); });
  return found;
}

Status refuse_gpu_backends(const EngineConfig& config, const Status& no_gpu) {
  const std::array<std::pair<std::string_view, std::string_view>, 3> named = {
      {{"attention_backend", config.attention_backend},
       {"prefill_attention_backend", config.prefill_attention_backend},
       {"decode_attention_backend", config.decode_attention_backend}}};
  for (const auto& [field, name] : named) {
    const auto backend = std::ranges::find(backend_names(), name, &BackendName::name);
    if (backend == backend_names().end() || backend->device != DeviceKind::kCuda) continue;
    return unavailable(fmt::format("[attention] {}: {} needs a GPU; {}; for a CPU expected auto",
                                   field, name, no_gpu.message()));
  }
  return {};
}

Status refuse_cpu_cache(const EngineConfig& config) {
  if (parse_dtype(config.kv_cache_dtype) != DType::kI8) return {};
  return invalid_argument(
      "[engine] kv_cache_dtype: got int8 on a GPU, expected fp8, a GPU's cache in 8 bits; int8 is "
      "for `device` cpu");
}

Status refuse_unpadded_drafts(const Speculation& speculation) {
  if (!speculation.wants_no_padding) return {};
  return invalid_argument(
      "[engine] `speculative_config`: disable_padded_drafter_batch; got true, expected false on "
      "a GPU: its drafters also compute rejected drafts, so that the host need not know their "
      "number; leave it out");
}

Status check_calculated_scales(const EngineConfig& config) {
  if (!config.calculate_kv_scales || parse_dtype(config.kv_cache_dtype) == DType::kF8E4M3) {
    return {};
  }
  return invalid_argument(
      fmt::format("[engine] calculate_kv_scales: got true with `kv_cache_dtype` {}, expected fp8; "
                  "set `kv_cache_dtype` to fp8, or leave `calculate_kv_scales` out",
                  config.kv_cache_dtype));
}

Status check_tokenizer(const EngineConfig& config) {
  if (config.tokenizer.empty() || !is_embedded(config.model)) return {};
  return invalid_argument(
      fmt::format("[tokenizer] tokenizer: must be empty, because `model` is {}: the embedded model "
                  "has its own tokenizer",
                  config.model.empty() ? "empty" : config.model));
}

Status check_step_tokens(int max_num_batched_tokens, int num_drafts) {
  if (max_num_batched_tokens > num_drafts) return {};
  return invalid_argument(fmt::format(
      "[engine] `max_num_batched_tokens`: got {}, expected at least {}, the newest token of a "
      "sequence and its drafts; raise it, or lower num_speculative_tokens",
      max_num_batched_tokens, 1 + num_drafts));
}

}  // namespace quire
