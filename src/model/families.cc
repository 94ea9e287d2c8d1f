#include "model/families.h"

#include <array>

namespace quire {
namespace {

// The defaults are those of each family's configuration class in transformers.
constexpr std::array kFamilies = {
    FamilyTraits{.architecture = "LlamaForCausalLM",
                 .qkv_bias = Trait::kFromConfig,
                 .o_bias = Trait::kFromConfig,
                 .mlp_bias = Trait::kFromConfig},
    FamilyTraits{.architecture = "MistralForCausalLM",
                 .window = WindowRule::kEveryLayer,
                 .default_window = 4096},
    FamilyTraits{.architecture = "Qwen2ForCausalLM",
                 .qkv_bias = Trait::kYes,
                 .window = WindowRule::kFromLayerUp,
                 .default_window = 4096},
    FamilyTraits{.architecture = "Qwen3ForCausalLM",
                 .qkv_bias = Trait::kFromConfig,
                 .o_bias = Trait::kFromConfig,
                 .qk_norm = true,
                 .window = WindowRule::kFromLayerUp,
                 .default_window = 4096,
                 .default_head_dim = 128},
};

}  // namespace

const FamilyTraits* find_family(std::string_view architecture) {
  for (const FamilyTraits& family : kFamilies) {
    if (family.architecture == architecture) return &family;
  }
  return nullptr;
}

std::string supported_architectures() {
  std::string names;
  for (const FamilyTraits& family : kFamilies) {
    if (!names.empty()) names += ", ";
    names += family.architecture;
  }
  return names;
}

}  // namespace quire
