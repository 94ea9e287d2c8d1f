#include "model/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "model/family_readers.h"
#include "model/mla.h"
#include "model/moe.h"

namespace quire {
namespace {

constexpr NormNames kNormsAroundSublayers = {.attention_input = "input_layernorm",
                                             .attention_output = "post_attention_layernorm",
                                             .mlp_input = "pre_feedforward_layernorm",
                                             .mlp_output = "post_feedforward_layernorm"};
constexpr NormNames kOutputNorms = {.attention_output = "post_attention_layernorm",
                                    .mlp_output = "post_feedforward_layernorm"};

constexpr Switch kAttentionBias = {false, "attention_bias"};
constexpr Switch kMlpBias = {false, "mlp_bias"};

constexpr FamilyTraits kLlama = {.architecture = "LlamaForCausalLM",
                                 .qkv_bias = kAttentionBias,
                                 .o_bias = kAttentionBias,
                                 .mlp_bias = kMlpBias};
constexpr FamilyTraits kQwen2 = {.architecture = "Qwen2ForCausalLM",
                                 .qkv_bias = kYes,
                                 .windows = WindowRule::kFromLayerUp,
                                 .window = 4096};
constexpr FamilyTraits kQwen3 = {.architecture = "Qwen3ForCausalLM",
                                 .sizes = {.head_dim = 128},
                                 .qk_norm = QkNorm::kPerHead,
                                 .qkv_bias = kAttentionBias,
                                 .o_bias = kAttentionBias,
                                 .windows = WindowRule::kFromLayerUp,
                                 .window = 4096};
constexpr FamilyTraits kDeepseekV3 = {.architecture = "DeepseekV3ForCausalLM",
                                      .sizes = {.head_dim = kHeadDimOfMla},
                                      .mtp = MtpLayers::kNextNumbers,
                                      .read_mla = read_deepseek_mla,
                                      .read_moe = read_deepseek_v3_moe};
constexpr FamilyTraits kGemma2 = {.architecture = "Gemma2ForCausalLM",
                                  .sizes = {.num_heads = 8,
                                            .num_kv_heads = 4,
                                            .head_dim = 256,
                                            .vocab_size = 256000,
                                            .max_position_embeddings = 8192},
                                  .activation_key = "hidden_activation",
                                  .activation = "gelu_pytorch_tanh",
                                  .norms = kNormsAroundSublayers,
                                  .norm_addend = 1.0F,
                                  .qkv_bias = kAttentionBias,
                                  .o_bias = kAttentionBias,
                                  .ties_embeddings = true,
                                  .windows = WindowRule::kByLayerType,
                                  .window = 4096,
                                  .window_pattern = 2,
                                  .read_own = read_gemma2};
constexpr FamilyTraits kGemma3 = {.architecture = "Gemma3ForCausalLM",
                                  .sizes = {.num_heads = 8,
                                            .num_kv_heads = 4,
                                            .head_dim = 256,
                                            .vocab_size = 262208,
                                            .max_position_embeddings = 131072},
                                  .activation_key = "hidden_activation",
                                  .activation = "gelu_pytorch_tanh",
                                  .norms = kNormsAroundSublayers,
                                  .norm_addend = 1.0F,
                                  .qk_norm = QkNorm::kPerHead,
                                  .qkv_bias = kAttentionBias,
                                  .o_bias = kAttentionBias,
                                  .ties_embeddings = true,
                                  .windows = WindowRule::kByLayerType,
                                  .window = 4096,
                                  .window_pattern = 6,
                                  .ropes = RopeRule::kByLayerType,
                                  .theta = 1e6,
                                  .window_theta = 1e4,
                                  .read_own = read_gemma3};

// The family as the text model of an architecture that also takes images.
constexpr FamilyTraits nested(FamilyTraits traits, std::string_view architecture,
                              std::string_view prefix) {
  traits.architecture = architecture;
  traits.nests_text = true;
  traits.prefix = prefix;
  return traits;
}

constexpr std::array kFamilies = {
    kLlama,
    FamilyTraits{.architecture = "MistralForCausalLM",
                 .windows = WindowRule::kEveryLayer,
                 .window = 4096},
    kQwen2,
    kQwen3,
    FamilyTraits{.architecture = "Qwen3MoeForCausalLM",
                 .qk_norm = QkNorm::kPerHead,
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .read_moe = read_qwen3_moe},
    FamilyTraits{.architecture = "MixtralForCausalLM",
                 .windows = WindowRule::kEveryLayer,
                 .theta = 1e6,
                 .read_moe = read_mixtral_moe},
    FamilyTraits{.architecture = "DeepseekV2ForCausalLM",
                 .sizes = {.head_dim = kHeadDimOfMla},
                 .read_mla = read_deepseek_mla,
                 .read_moe = read_deepseek_v2_moe},
    kDeepseekV3,
    FamilyTraits{.architecture = "MiMoForCausalLM",
                 .qkv_bias = kYes,
                 .windows = WindowRule::kFromLayerUp,
                 .window = 4096,
                 .mtp = MtpLayers::kOfMiMo},
    kGemma2,
    kGemma3,
    nested(kGemma3, "Gemma3ForConditionalGeneration", "language_model.model."),
};

}  // namespace

const FamilyTraits* find_family(std::string_view architecture) {
  const auto found = std::ranges::find(kFamilies, architecture, &FamilyTraits::architecture);
  return found == kFamilies.end() ? nullptr : &*found;
}

std::string supported_architectures() {
  return fmt::format("{}", fmt::join(kFamilies | std::views::transform(&FamilyTraits::architecture), ", "));
}

}  // namespace quire
