#include "model/families.h"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/numbers.h"
#include "model/decoder.h"
#include "model/gemma/gemma.h"
#include "model/llama/llama.h"
#include "model/weights.h"

namespace quire {
namespace {

constexpr std::array kFamilies = {
    ModelFamily{"LlamaForCausalLM", parse_llama, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"MistralForCausalLM", parse_mistral, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"Qwen2ForCausalLM", parse_qwen2, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"Qwen3ForCausalLM", parse_qwen3, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"Qwen3MoeForCausalLM", parse_qwen3_moe, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"MixtralForCausalLM", parse_mixtral, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"DeepseekV2ForCausalLM", parse_deepseek_v2, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"DeepseekV3ForCausalLM", parse_deepseek_v3, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"MiMoForCausalLM", parse_mimo, list_llama_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_llama},
    ModelFamily{"Gemma2ForCausalLM", parse_gemma2, list_gemma_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_gemma},
    ModelFamily{"Gemma3ForCausalLM", parse_gemma3, list_gemma_tensors, decoder_kv_groups,
                decoder_activation_bytes, load_gemma},
    ModelFamily{"Gemma3ForConditionalGeneration", parse_gemma3_multimodal, list_gemma_tensors,
                decoder_kv_groups, decoder_activation_bytes, load_gemma},
};

}  // namespace

const ModelFamily* find_family(std::string_view architecture) {
  for (const ModelFamily& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

const ModelFamily& family_of(const ModelConfig& config) {
  const ModelFamily* family = find_family(config.architecture);
  QUIRE_CHECK(family != nullptr && config.family != nullptr,
              "[model] a configuration has no family");
  return *family;
}

std::string supported_architectures() {
  std::string names;
  for (const ModelFamily& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.architecture;
  }
  return names;
}

Result<std::unique_ptr<Model>> load_model(const ModelConfig& config, WeightSource& source, Ops& ops,
                                          const ModelLimits& limits, const LoadOptions& options) {
  QUIRE_CHECK(
      limits.max_num_tokens > 0 && limits.max_num_logit_rows > 0 && limits.max_model_len > 0,
      "[model] a limit is not set");
  return family_of(config).load(config, source, ops, limits, options);
}

int64_t num_parameters(const ModelConfig& config) {
  int64_t count = 0;
  for (const TensorSpec& tensor : family_of(config).tensors(config)) {
    if (!tensor.has_scales()) count += tensor.shape.num_elements();
  }
  return count;
}

Status check_tensors_present(const ModelConfig& config, const WeightSource& source) {
  int num_missing = 0;
  std::string first;
  for (const TensorSpec& tensor : family_of(config).tensors(config)) {
    const bool is_there = source.has(stored_name(tensor, source));
    if (tensor.has_scales() || is_there) continue;
    if (++num_missing == 1) first = tensor.name;
  }
  if (num_missing == 0) return {};
  return invalid_argument(fmt::format(
      "[model] the checkpoint lacks {} tensors of {}, the first of which is {}; download it again",
      num_missing, config.architecture, quote_name(source.name_in_file(first))));
}

std::vector<KvGroup> make_kv_groups(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation) {
  return family_of(config).kv_groups(config, limits, activation);
}

Status check_slices(const ModelConfig& config, WeightSource& source, const Ops& ops,
                    const Parallel& parallel) {
  return check_slices(family_of(config).tensors(config), source, ops.weights(), parallel);
}

Result<WeightPlan> plan_weights(const ModelConfig& config, const WeightSource& source,
                                const Ops& ops, const Parallel& parallel) {
  return plan_weights(family_of(config).tensors(config), source, ops.weights(), parallel);
}

namespace {

// Names the types of a GGUF file's quantized blocks; empty: it has none.
std::string describe_blocks(const ModelConfig& config, const WeightSource& source,
                            const WeightStore& store) {
  std::set<std::string_view> kept;
  std::set<std::string_view> expanded;
  for (const std::string& name : source.names()) {
    const GgufBlockType* const type = source.block_type(name);
    if (type == nullptr) continue;
    const bool is_kept = store.quantized_bytes({{1, type->block_elements}, type}) > 0;
    (is_kept ? kept : expanded).insert(type->name);
  }
  std::string text;
  if (!kept.empty()) text = fmt::format("GGUF {}, computed as they are", fmt::join(kept, ", "));
  if (!expanded.empty()) {
    text += fmt::format("{}{}, expanded to {} at load", kept.empty() ? "GGUF " : "; ",
                        fmt::join(expanded, ", "), dtype_name(config.dtype.value_or(DType::kF16)));
  }
  return text;
}

}  // namespace

std::string describe_quantization(const ModelConfig& config, const WeightSource& source,
                                  const Ops& ops, const WeightPlan& plan) {
  if (!config.format) return describe_blocks(config, source, ops.weights());
  const std::string format = describe(*config.format);
  const QuantizedMatrices& count = plan.quantized;
  if (count.num_all == 0) return format + ", of which the checkpoint has no matrix";
  if (count.num_expanded == 0) return format + ", computed as they are";
  const DType plain = ops.weights().linear_dtype(plain_scheme(config.format->scheme)).value();
  const std::string expanded = fmt::format("expanded to {} at load", dtype_name(plain));
  if (count.num_expanded == count.num_all) return fmt::format("{}, {}", format, expanded);
  return fmt::format("{}, computed as they are, except {} of {} matrices, which are {}", format,
                     count.num_expanded, count.num_all, expanded);
}

Result<int64_t> estimate_activation_bytes(const ModelConfig& config, const ModelLimits& limits,
                                          const Ops& ops) {
  QUIRE_ASSIGN_OR_RETURN(const int64_t experts, experts_workspace_bytes(config, limits, ops));
  const int64_t others = family_of(config).activation_bytes(config, limits, ops);
  return (Saturated(others) + experts).get();
}

}  // namespace quire
