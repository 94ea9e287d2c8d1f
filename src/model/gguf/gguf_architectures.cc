#include "model/gguf/gguf_architectures.h"

#include <algorithm>
#include <array>

namespace quire {
namespace {

constexpr GgufTensorName kNamedByAttention[] = {
    {"post_attention_norm", "post_attention_layernorm"}};
constexpr GgufTensorName kNormsOfOutputs[] = {{"post_attention_norm", "post_attention_layernorm"},
                                              {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr GgufTensorName kGemmaFileNorms[] = {{"post_attention_norm", "post_attention_layernorm"},
                                              {"ffn_norm", "pre_feedforward_layernorm"},
                                              {"post_ffw_norm", "post_feedforward_layernorm"}};
constexpr GgufTensorName kGlm4FileNorms[] = {{"post_attention_norm", "post_self_attn_layernorm"},
                                             {"ffn_norm", "post_attention_layernorm"},
                                             {"post_ffw_norm", "post_mlp_layernorm"}};

constexpr GgufField kWindowFields[] = {{"rope.freq_base_swa", "rope_local_base_freq"}};
constexpr GgufField kLagunaFields[] = {
    {"rope.freq_base_swa", "rope_local_base_freq"},
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};
// sliding_window_size does not count the query's own position.
constexpr GgufField kMimoFields[] = {{"rope.freq_base_swa", "rope_local_base_freq"},
                                     {"attention.sliding_window", "sliding_window_size"}};
constexpr GgufField kMuseFields[] = {{"final_logit_softcapping", "final_logit_softcapping"},
                                     {"logit_scale", "output_multiplier"}};
constexpr GgufField kLlama4Fields[] = {{"feed_forward_length", "intermediate_size_mlp"},
                                       {"interleave_moe_layer_step", "interleave_moe_layer_step"}};
constexpr GgufField kErnieFields[] = {{"interleave_moe_layer_step", "moe_layer_interval"}};
constexpr GgufField kGemmaFields[] = {{"attn_logit_softcapping", "attn_logit_softcapping"},
                                      {"final_logit_softcapping", "final_logit_softcapping"},
                                      {"rope.freq_base_swa", "rope_local_base_freq"}};

constexpr GgufField kGemma4Fields[] = {{"final_logit_softcapping", "final_logit_softcapping"},
                                       {"attention.shared_kv_layers", "num_kv_shared_layers"},
                                       {"attention.key_length_swa", "head_dim"},
                                       {"attention.key_length", "global_head_dim"}};

constexpr GgufField kLfm2Fields[] = {{"shortconv.l_cache", "conv_L_cache"}};
constexpr GgufField kQwenMoeFields[] = {
    {"expert_shared_feed_forward_length", "shared_expert_intermediate_size"}};

using Names = std::string_view[];
constexpr Names kLlamas = {"LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM"};
constexpr Names kQwen2Vls = {"Qwen2_5_VLForConditionalGeneration"};
constexpr Names kQwen3Vls = {"Qwen3VLForConditionalGeneration"};
constexpr Names kQwen3VlMoes = {"Qwen3VLMoeForConditionalGeneration"};
constexpr Names kQwen35s = {"Qwen3_5ForCausalLM", "Qwen3_5ForConditionalGeneration"};
constexpr Names kQwen35Moes = {"Qwen3_5MoeForCausalLM", "Qwen3_5MoeForConditionalGeneration"};
constexpr Names kDeepseeks = {"DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM",
                              "Glm4MoeLiteForCausalLM", "KimiK25ForConditionalGeneration"};
constexpr Names kGemma3s = {"Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"};
constexpr Names kGemma4s = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration",
                            "Gemma4UnifiedForConditionalGeneration"};
constexpr Names kMistral4s = {"Mistral4ForCausalLM", "Mistral3ForConditionalGeneration"};
constexpr Names kLlama4s = {"Llama4ForCausalLM", "Llama4ForConditionalGeneration"};
constexpr Names kMistral3s = {"Ministral3ForCausalLM", "Mistral3ForConditionalGeneration"};

// A file of a model that also takes images has only the decoder, as in a family without images.
// GLM-4.7-Flash is computed as DeepSeek-V3: only the defaults of config.json differ.
constexpr std::array kArchitectures = {
    GgufArchitecture{.name = "llama",
                     .architecture = "LlamaForCausalLM",
                     .variant_key = "expert_count",
                     .variant = "MixtralForCausalLM",
                     .checkpoints = kLlamas,
                     .pairs_rows = true,
                     .experts = GgufExperts::kNormalized},
    GgufArchitecture{.name = "qwen2", .architecture = "Qwen2ForCausalLM"},
    GgufArchitecture{
        .name = "qwen2vl", .architecture = "Qwen2ForCausalLM", .checkpoints = kQwen2Vls},
    GgufArchitecture{.name = "qwen3", .architecture = "Qwen3ForCausalLM"},
    GgufArchitecture{
        .name = "qwen3vl", .architecture = "Qwen3ForCausalLM", .checkpoints = kQwen3Vls},
    GgufArchitecture{.name = "qwen3moe",
                     .architecture = "Qwen3MoeForCausalLM",
                     .experts = GgufExperts::kOfOwnWidth},
    GgufArchitecture{.name = "qwen3vlmoe",
                     .architecture = "Qwen3MoeForCausalLM",
                     .checkpoints = kQwen3VlMoes,
                     .experts = GgufExperts::kOfOwnWidth},
    GgufArchitecture{.name = "deepseek2",
                     .architecture = "DeepseekV2ForCausalLM",
                     .checkpoints = kDeepseeks,
                     .has_latents = true,
                     .yarn_factor = GgufYarnFactor::kTenthOfAllDim,
                     .experts = GgufExperts::kScaled,
                     .gating = GgufGating::kSoftmaxOrSigmoid},
    GgufArchitecture{.name = "gemma2",
                     .architecture = "Gemma2ForCausalLM",
                     .norms = kGemmaFileNorms,
                     .windows = GgufWindows::kByLayer,
                     .layers_of_largest_gemma = 46,
                     .fields = kGemmaFields},
    GgufArchitecture{.name = "gemma3",
                     .architecture = "Gemma3ForCausalLM",
                     .checkpoints = kGemma3s,
                     .norms = kGemmaFileNorms,
                     .windows = GgufWindows::kByLayer,
                     .layers_of_largest_gemma = 62,
                     .fields = kGemmaFields},
    GgufArchitecture{.name = "gemma4",
                     .architecture = "Gemma4ForCausalLM",
                     .checkpoints = kGemma4s,
                     .norms = kGemmaFileNorms,
                     .windows = GgufWindows::kByLayer,
                     .experts = GgufExperts::kOfOwnWidth,
                     .is_gemma4 = true,
                     .fields = kGemma4Fields},
    GgufArchitecture{.name = "granite",
                     .architecture = "GraniteForCausalLM",
                     .pairs_rows = true,
                     .has_multipliers = true},
    GgufArchitecture{.name = "smollm3", .architecture = "SmolLM3ForCausalLM", .pairs_rows = true},
    GgufArchitecture{.name = "olmo2",
                     .architecture = "Olmo2ForCausalLM",
                     .variant_key = "attention.sliding_window",
                     .variant = "Olmo3ForCausalLM",
                     .norms = kNormsOfOutputs,
                     .yarn_factor = GgufYarnFactor::kStatedOrDerived,
                     .windows = GgufWindows::kByLayer,
                     .fields = kWindowFields},
    GgufArchitecture{.name = "phi3",
                     .architecture = "Phi3ForCausalLM",
                     .fuses_gate_up = true,
                     .rotates_part = true,
                     .has_longrope = true,
                     .windows = GgufWindows::kEveryLayer},
    GgufArchitecture{.name = "mistral3",
                     .architecture = "MistralForCausalLM",
                     .variant_key = "attention.temperature_scale",
                     .variant = "Ministral3ForCausalLM",
                     .checkpoints = kMistral3s,
                     .pairs_rows = true,
                     .temperature = 0.0,
                     .yarn_factor = GgufYarnFactor::kAllDim,
                     .windows = GgufWindows::kEveryLayer},
    GgufArchitecture{.name = "mistral4",
                     .architecture = "Mistral4ForCausalLM",
                     .checkpoints = kMistral4s,
                     .has_latents = true,
                     .temperature = 0.1,
                     .yarn_factor = GgufYarnFactor::kTenthOfAllDim,
                     .experts = GgufExperts::kScaled},
    GgufArchitecture{
        .name = "seed_oss", .architecture = "SeedOssForCausalLM", .norms = kNamedByAttention},
    GgufArchitecture{.name = "glm4",
                     .architecture = "Glm4ForCausalLM",
                     .norms = kGlm4FileNorms,
                     .fuses_gate_up = true,
                     .rotates_part = true},
    GgufArchitecture{.name = "glm4moe",
                     .architecture = "Glm4MoeForCausalLM",
                     .norms = kNamedByAttention,
                     .rotates_part = true,
                     .experts = GgufExperts::kScaled,
                     .gating = GgufGating::kSigmoid},
    GgufArchitecture{.name = "minimax-m2",
                     .architecture = "MiniMaxM2ForCausalLM",
                     .rotates_part = true,
                     .experts = GgufExperts::kNormalized,
                     .gating = GgufGating::kSigmoid,
                     .width_key = "expert_feed_forward_length"},
    GgufArchitecture{.name = "gpt-oss",
                     .architecture = "GptOssForCausalLM",
                     .norms = kNamedByAttention,
                     .has_exact_yarn = true,
                     .windows = GgufWindows::kByLayer,
                     .experts = GgufExperts::kNormalized,
                     .width_key = "expert_feed_forward_length"},
    GgufArchitecture{.name = "hunyuan-dense", .architecture = "HunYuanDenseV1ForCausalLM"},
    GgufArchitecture{.name = "hy_v3",
                     .architecture = "HYV3ForCausalLM",
                     .experts = GgufExperts::kShared,
                     .gating = GgufGating::kSigmoid},
    GgufArchitecture{.name = "ernie4_5", .architecture = "Ernie4_5ForCausalLM"},
    GgufArchitecture{.name = "ernie4_5-moe",
                     .architecture = "Ernie4_5_MoeForCausalLM",
                     .experts = GgufExperts::kShared,
                     .normalizes = true,
                     .fields = kErnieFields},
    GgufArchitecture{.name = "laguna",
                     .architecture = "LagunaForCausalLM",
                     .rotates_part = true,
                     .yarn_factor = GgufYarnFactor::kStated,
                     .layer_heads = "num_attention_heads_per_layer",
                     .begins_without_window = true,
                     .windows = GgufWindows::kByLayer,
                     .experts = GgufExperts::kShared,
                     .gating = GgufGating::kSigmoid,
                     .fields = kLagunaFields},
    GgufArchitecture{.name = "mimo2",
                     .architecture = "MiMoV2FlashForCausalLM",
                     .rotates_part = true,
                     .is_hybrid = true,
                     .windows = GgufWindows::kByLayer,
                     .experts = GgufExperts::kScaled,
                     .gating = GgufGating::kSigmoid,
                     .normalizes = true,
                     .fields = kMimoFields},
    GgufArchitecture{.name = "muse-glimmer",
                     .architecture = "MuseGlimmerForConditionalGeneration",
                     .norms = kGemmaFileNorms,
                     .pairs_rows = true,
                     .windows = GgufWindows::kByLayer,
                     .adds_qk_norm_weights = true,
                     .fields = kMuseFields},
    GgufArchitecture{.name = "llama4",
                     .architecture = "Llama4ForCausalLM",
                     .checkpoints = kLlama4s,
                     .windows = GgufWindows::kChunks,
                     .experts = GgufExperts::kOnInput,
                     .gating = GgufGating::kSigmoid,
                     .width_key = "expert_feed_forward_length",
                     .fields = kLlama4Fields},
    GgufArchitecture{.name = "exaone4",
                     .architecture = "Exaone4ForCausalLM",
                     .norms = kNormsOfOutputs,
                     .windows = GgufWindows::kByLayer},
    GgufArchitecture{.name = "lfm2",
                     .architecture = "Lfm2ForCausalLM",
                     .has_convs = true,
                     .fields = kLfm2Fields},
    GgufArchitecture{.name = "lfm2moe",
                     .architecture = "Lfm2MoeForCausalLM",
                     .has_convs = true,
                     .experts = GgufExperts::kScaled,
                     .gating = GgufGating::kSigmoid,
                     .normalizes = true,
                     .fields = kLfm2Fields},
    GgufArchitecture{.name = "qwen35",
                     .architecture = "Qwen3_5ForCausalLM",
                     .checkpoints = kQwen35s,
                     .norms = kNamedByAttention,
                     .rotates_part = true,
                     .deltas = GgufDeltas::kTiled},
    GgufArchitecture{.name = "qwen35moe",
                     .architecture = "Qwen3_5MoeForCausalLM",
                     .checkpoints = kQwen35Moes,
                     .norms = kNamedByAttention,
                     .rotates_part = true,
                     .deltas = GgufDeltas::kTiled,
                     .experts = GgufExperts::kOfOwnWidth,
                     .fields = kQwenMoeFields},
    GgufArchitecture{.name = "qwen3next",
                     .architecture = "Qwen3NextForCausalLM",
                     .norms = kNamedByAttention,
                     .rotates_part = true,
                     .deltas = GgufDeltas::kGrouped,
                     .experts = GgufExperts::kOfOwnWidth,
                     .fields = kQwenMoeFields},
};

bool converts(const GgufArchitecture& row, std::string_view architecture) {
  if (row.checkpoints.empty()) {
    return architecture == row.architecture || architecture == row.variant;
  }
  return std::ranges::find(row.checkpoints, architecture) != row.checkpoints.end();
}

void append_name(std::string_view name, std::string& list) {
  if (!list.empty()) list += ", ";
  list += name;
}

}  // namespace

const GgufArchitecture* find_gguf_architecture(std::string_view name) {
  const auto found = std::ranges::find(kArchitectures, name, &GgufArchitecture::name);
  return found == kArchitectures.end() ? nullptr : &*found;
}

std::string gguf_architectures() {
  std::string names;
  for (const GgufArchitecture& row : kArchitectures) append_name(row.name, names);
  return names;
}

std::string gguf_name_of(std::string_view architecture) {
  std::string names;
  if (architecture.empty()) return names;
  for (const GgufArchitecture& row : kArchitectures) {
    if (converts(row, architecture)) append_name(row.name, names);
  }
  return names;
}

}  // namespace quire
