#include "model/families.h"

#include <array>

#include "base/check.h"
#include "model/decoder.h"
#include "model/gemma/gemma.h"
#include "model/llama/llama.h"

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
              "[model] a configuration has its family");
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

}  // namespace quire
