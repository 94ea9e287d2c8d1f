#include "model/families.h"

#include <algorithm>
#include <array>

#include "model/family_readers.h"
#include "model/mla.h"
#include "model/moe_readers.h"

namespace quire {
namespace {

constexpr NormNames kNormsAroundSublayers = {.attention_input = "input_layernorm",
                                             .attention_output = "post_attention_layernorm",
                                             .mlp_input = "pre_feedforward_layernorm",
                                             .mlp_output = "post_feedforward_layernorm"};
constexpr NormNames kGlm4Norms = {.attention_input = "input_layernorm",
                                  .attention_output = "post_self_attn_layernorm",
                                  .mlp_input = "post_attention_layernorm",
                                  .mlp_output = "post_mlp_layernorm"};
constexpr NormNames kOutputNorms = {.attention_output = "post_attention_layernorm",
                                    .mlp_output = "post_feedforward_layernorm"};

constexpr Switch kAttentionBias = {false, "attention_bias"};
constexpr Switch kMlpBias = {false, "mlp_bias"};
constexpr Switch kUseBias = {false, "use_bias"};

constexpr StoredName kMixtralNames[] = {
    {"block_sparse_moe", "mlp"}, {"w1", "gate_proj"}, {"w2", "down_proj"}, {"w3", "up_proj"}};
constexpr StoredName kMiniMaxNames[] = {
    {"block_sparse_moe.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"block_sparse_moe", "mlp"},
    {"w1", "gate_proj"},
    {"w2", "down_proj"},
    {"w3", "up_proj"}};
// The first pair keeps names that are the decoder's already.
constexpr StoredName kGemma4Names[] = {{"mlp.experts", "mlp.experts"},
                                       {"experts", "mlp.experts"},
                                       {"router.proj", "mlp.gate"},
                                       {"router", "mlp.gate"}};
constexpr StoredName kHunyuanNames[] = {{"query_layernorm", "q_norm"}, {"key_layernorm", "k_norm"}};
constexpr StoredName kHy3Names[] = {
    {"mlp.router.gate", "mlp.gate"},
    {"mlp.expert_bias", "mlp.gate.e_score_correction_bias"},
    {"mlp.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"mlp.shared_mlp", "mlp.shared_experts"}};
constexpr StoredName kErnieNames[] = {
    {"mlp.moe_statics.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"mlp.gate.moe_statics.e_score_correction_bias", "mlp.gate.e_score_correction_bias"}};
constexpr StoredName kLagunaNames[] = {
    {"self_attn.g_proj", "self_attn.gate_proj"},
    {"mlp.experts.e_score_correction_bias", "mlp.gate.e_score_correction_bias"},
    {"mlp.shared_expert", "mlp.shared_experts"}};
constexpr StoredName kQwen3_5MoeNames[] = {{"mlp.shared_expert", "mlp.shared_experts"}};
constexpr StoredName kMimoNames[] = {{"self_attn.attention_sink_bias", "self_attn.sinks"}};
constexpr StoredName kGptOssNames[] = {{"mlp.router", "mlp.gate"}};
constexpr StoredName kLlama4Names[] = {{"feed_forward.router", "mlp.gate"},
                                       {"feed_forward.shared_expert", "mlp.shared_experts"},
                                       {"feed_forward", "mlp"}};
constexpr StoredName kLfm2Names[] = {
    {"model.embedding_norm", "model.norm"},
    {"operator_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"self_attn.out_proj", "self_attn.o_proj"},
    {"q_layernorm", "q_norm"},
    {"k_layernorm", "k_norm"},
    {"feed_forward.expert_bias", "mlp.gate.e_score_correction_bias"},
    {"feed_forward", "mlp"},
    {"w1", "gate_proj"},
    {"w2", "down_proj"},
    {"w3", "up_proj"}};
// transformers 5.24 saves the layers as blocks, which is its name for the vision tower's layers.
constexpr StoredName kKimiNames[] = {{"language_model.model.blocks", "model.layers"}};

constexpr MtpForm kMimoMtp = {.prefix = "model.mtp_layers.",
                              .layer_prefix = "model.mtp_layers.0.",
                              .projection = "model.mtp_layers.0.input_proj",
                              .hidden_norm = "model.mtp_layers.0.hidden_layernorm",
                              .token_norm = "model.mtp_layers.0.token_layernorm",
                              .final_norm = "model.mtp_layers.0.final_layernorm",
                              .count_key = "num_nextn_predict_layers"};
constexpr MtpForm kQwenMtp = {.prefix = "mtp.",
                              .layer_prefix = "mtp.layers.0.",
                              .projection = "mtp.fc",
                              .hidden_norm = "mtp.pre_fc_norm_hidden",
                              .token_norm = "mtp.pre_fc_norm_embedding",
                              .final_norm = "mtp.norm",
                              .target_norm = "model.norm",
                              .begins_with_token = true,
                              .count_key = "mtp_num_hidden_layers"};

// The family with this change.
template <typename Change>
constexpr FamilyTraits with(FamilyTraits traits, Change change) {
  change(traits);
  return traits;
}

constexpr FamilyTraits named(std::string_view architecture, std::string_view models,
                             FamilyTraits traits) {
  traits.architecture = architecture;
  traits.models = models;
  return traits;
}

// The family as the decoder of an architecture that also takes images.
constexpr FamilyTraits within(std::string_view architecture, std::string_view models,
                              FamilyTraits traits, std::string_view text_type = {}) {
  traits.place = FieldsPlace::kTextConfig;
  traits.text_type = text_type;
  return named(architecture, models, traits);
}

constexpr FamilyTraits kLlama = {.architecture = "LlamaForCausalLM",
                                 .models = "Llama 2 to 3.3, and models of their form",
                                 .qkv_bias = kAttentionBias,
                                 .o_bias = kAttentionBias,
                                 .mlp_bias = kMlpBias};
constexpr FamilyTraits kQwen2 = {.architecture = "Qwen2ForCausalLM",
                                 .models = "Qwen2, Qwen2.5",
                                 .qkv_bias = kYes,
                                 .windows = WindowRule::kFromLayerUp,
                                 .window = 4096};
constexpr FamilyTraits kQwen3 = {.architecture = "Qwen3ForCausalLM",
                                 .models = "Qwen3; Qwen3-Embedding, Qwen3-Reranker",
                                 .sizes = {.head_dim = 128},
                                 .qk_norm = QkNorm::kPerHead,
                                 .qkv_bias = kAttentionBias,
                                 .o_bias = kAttentionBias,
                                 .windows = WindowRule::kFromLayerUp,
                                 .window = 4096};
constexpr FamilyTraits kDeepseekV3 = {.architecture = "DeepseekV3ForCausalLM",
                                      .models = "DeepSeek-V3, R1; Kimi K2",
                                      .sizes = {.head_dim = kHeadDimOfMla},
                                      .mtp = MtpLayers::kNextNumbers,
                                      .read_mla = read_deepseek_mla,
                                      .read_moe = read_deepseek_v3_moe};
constexpr FamilyTraits kGemma2 = {.architecture = "Gemma2ForCausalLM",
                                  .models = "Gemma 2",
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
constexpr FamilyTraits kGemma3 =
    with(named("Gemma3ForCausalLM", "Gemma 3 270M, 1B", kGemma2), [](FamilyTraits& gemma) {
      gemma.sizes.vocab_size = 262208;
      gemma.sizes.max_position_embeddings = 131072;
      gemma.qk_norm = QkNorm::kPerHead;
      gemma.window_pattern = 6;
      gemma.ropes = RopeRule::kByLayerType;
      gemma.theta = 1e6;
      gemma.window_theta = 1e4;
      gemma.read_own = read_gemma3;
    });

constexpr FamilyTraits kGemma4 = with(
    named("Gemma4ForCausalLM", "Gemma 4 without its towers", kGemma3), [](FamilyTraits& gemma) {
      gemma.sizes.vocab_size = 262144;
      gemma.norm_addend = 0.0F;
      gemma.window = 512;
      gemma.renames = kGemma4Names;
      gemma.read_moe = read_gemma4_moe;
      gemma.read_own = read_gemma4;
    });
constexpr FamilyTraits kGemma4Unified = with(kGemma4, [](FamilyTraits& gemma) {
  gemma.sizes.max_position_embeddings = 262144;
  gemma.window = 1024;
  gemma.read_moe = nullptr;
  gemma.read_own = read_gemma4_unified;
});

constexpr FamilyTraits kMistral = {.architecture = "MistralForCausalLM",
                                   .models = "Mistral 7B to Small 3",
                                   .windows = WindowRule::kEveryLayer,
                                   .window = 4096};
constexpr FamilyTraits kMinistral3 = {.architecture = "Ministral3ForCausalLM",
                                      .models = "Ministral 3 without its tower",
                                      .sizes = {.head_dim = 128, .rms_norm_eps = 1e-5},
                                      .windows = WindowRule::kEveryLayer,
                                      .read_own = read_ministral3};
constexpr FamilyTraits kQwen3Moe = {.architecture = "Qwen3MoeForCausalLM",
                                    .models = "Qwen3-30B-A3B, 235B-A22B, Coder",
                                    .qk_norm = QkNorm::kPerHead,
                                    .qkv_bias = kAttentionBias,
                                    .o_bias = kAttentionBias,
                                    .read_moe = read_qwen3_moe};
constexpr FamilyTraits kQwen3Vl = {.sizes = {.head_dim = 128},
                                   .qk_norm = QkNorm::kPerHead,
                                   .qkv_bias = kAttentionBias,
                                   .o_bias = kAttentionBias,
                                   .theta = 5e5};
constexpr FamilyTraits kQwen3VlMoe = with(kQwen3Vl, [](FamilyTraits& qwen) {
  qwen.sizes = {};
  qwen.transposes_experts = true;
  qwen.read_moe = read_qwen3_vl_moe;
});
constexpr FamilyTraits kKimi = with(kDeepseekV3, [](FamilyTraits& kimi) {
  kimi.ties_embeddings = true;
  kimi.mtp = MtpLayers::kNone;
  kimi.renames = kKimiNames;
});
constexpr FamilyTraits kOlmo2 = {.architecture = "Olmo2ForCausalLM",
                                 .models = "OLMo 2",
                                 .sizes = {.rms_norm_eps = 1e-5},
                                 .norms = kOutputNorms,
                                 .qk_norm = QkNorm::kWholeWidth,
                                 .qkv_bias = kAttentionBias,
                                 .o_bias = kAttentionBias};

constexpr FamilyTraits kErnie = {
    .architecture = "Ernie4_5ForCausalLM",
    .models = "ERNIE-4.5-0.3B",
    .sizes = {.num_kv_heads = 2, .head_dim = 128, .rms_norm_eps = 1e-5},
    .qkv_bias = kUseBias,
    .o_bias = kUseBias,
    .mlp_bias = kUseBias,
    .ties_embeddings = true,
    .theta = 5e5,
    .rotary_pairs = RotaryPairs::kNeighbours};

constexpr FamilyTraits kMistral4 = {.architecture = "Mistral4ForCausalLM",
                                    .models = "Mistral Small 4 without its tower",
                                    .sizes = {.head_dim = kHeadDimOfMla},
                                    .read_mla = read_deepseek_mla,
                                    .read_moe = read_mistral4_moe,
                                    .read_own = read_ministral3};

constexpr FamilyTraits kMuse = {.architecture = "MuseGlimmerForConditionalGeneration",
                                .models = "Muse Glimmer, text",
                                .place = FieldsPlace::kTextConfigOrRoot,  // root: GGUF files
                                .sizes = {.head_dim = 128, .rms_norm_eps = 1e-5},
                                .activation_key = "hidden_activation",
                                .norms = kNormsAroundSublayers,
                                .norm_addend = 1.0F,
                                .qk_norm = QkNorm::kPerHead,
                                .output_gate = {GateWidth::kPerElement, GateFunction::kSigmoid},
                                .qkv_bias = kAttentionBias,
                                .o_bias = kAttentionBias,
                                .windows = WindowRule::kByLayerType,
                                .window = 2048,
                                .window_pattern = 4,
                                .ropes = RopeRule::kWindowsOnly,
                                .read_own = read_muse};
constexpr FamilyTraits kLlama4 = {
    .architecture = "Llama4ForCausalLM",
    .models = "Llama 4 without its tower",
    .sizes = {.num_kv_heads = 8, .head_dim = 128, .rms_norm_eps = 1e-5},
    .qk_norm = QkNorm::kRotatedHeads,
    .has_qk_norm = {true, "use_qk_norm"},
    .qkv_bias = kAttentionBias,
    .o_bias = kAttentionBias,
    .windows = WindowRule::kChunks,
    .window = 8192,
    .ropes = RopeRule::kAllButListed,
    .theta = 5e5,
    .rotary_pairs = RotaryPairs::kNeighbours,
    .renames = kLlama4Names,
    .transposes_experts = true,
    .read_moe = read_llama4_moe,
    .read_own = read_llama4};

constexpr FamilyTraits kLfm2 = {.architecture = "Lfm2ForCausalLM",
                                .models = "LFM2, LFM2.5",
                                .sizes = {.num_kv_heads = 8,
                                          .vocab_size = 65536,
                                          .max_position_embeddings = 128000,
                                          .rms_norm_eps = 1e-5},
                                .qk_norm = QkNorm::kPerHead,
                                .ties_embeddings = true,
                                .has_convs = true,
                                .theta = 1e6,
                                .renames = kLfm2Names,
                                .read_own = read_lfm2};

constexpr FamilyTraits kQwen3_5 = {.architecture = "Qwen3_5ForCausalLM",
                                   .models = "Qwen3.5, 3.6 without their tower",
                                   .sizes = {.num_kv_heads = 4, .head_dim = 256},
                                   .norm_addend = 1.0F,
                                   .qk_norm = QkNorm::kPerHead,
                                   .output_gate = {GateWidth::kPerElement, GateFunction::kSigmoid},
                                   .qkv_bias = kAttentionBias,
                                   .o_bias = kAttentionBias,
                                   .has_deltas = true,
                                   .fuses_output_gate = true,
                                   .rotated_part = 0.25,
                                   .mtp_form = &kQwenMtp,
                                   .num_mtp_layers = 1,
                                   .read_own = read_qwen3_5};
constexpr FamilyTraits kQwen3_5Moe =
    with(named("Qwen3_5MoeForCausalLM", "Qwen3.5, 3.6 with experts, without their tower", kQwen3_5),
         [](FamilyTraits& qwen) {
           qwen.sizes = {.num_kv_heads = 2, .head_dim = 256, .intermediate_size = 512};
           qwen.renames = kQwen3_5MoeNames;
           qwen.read_moe = read_qwen3_5_moe;
         });

constexpr std::array kFamilies = {
    kLlama,
    kMistral,
    kQwen2,
    kQwen3,
    kQwen3Moe,
    FamilyTraits{.architecture = "MixtralForCausalLM",
                 .models = "Mixtral",
                 .windows = WindowRule::kEveryLayer,
                 .theta = 1e6,
                 .renames = kMixtralNames,
                 .read_moe = read_mixtral_moe},
    FamilyTraits{.architecture = "DeepseekV2ForCausalLM",
                 .models = "DeepSeek-V2, Coder-V2",
                 .sizes = {.head_dim = kHeadDimOfMla},
                 .read_mla = read_deepseek_mla,
                 .read_moe = read_deepseek_v2_moe},
    kDeepseekV3,
    with(named("MiMoForCausalLM", "MiMo-7B", kQwen2),
         [](FamilyTraits& mimo) { mimo.mtp_form = &kMimoMtp; }),
    kGemma2,
    kGemma3,
    within("Gemma3ForConditionalGeneration", "Gemma 3 4B to 27B, text", kGemma3),
    kGemma4,
    within("Gemma4ForConditionalGeneration", "Gemma 4 E2B, E4B, 26B-A4B, 31B, text", kGemma4),
    within("Gemma4UnifiedForConditionalGeneration", "Gemma 4 12B, text", kGemma4Unified),
    within("Qwen3VLForConditionalGeneration", "Qwen3-VL, text", kQwen3Vl),
    within("Qwen3VLMoeForConditionalGeneration", "Qwen3-VL-30B-A3B, 235B-A22B, text", kQwen3VlMoe),
    FamilyTraits{.architecture = "Qwen2_5_VLForConditionalGeneration",
                 .models = "Qwen2.5-VL, text",
                 .place = FieldsPlace::kTextConfigOrRoot,
                 .sizes = {.rms_norm_eps = 1e-5},
                 .qkv_bias = kYes,
                 .windows = WindowRule::kFromLayerUp,
                 .window = 4096,
                 .theta = 1e6},
    kMinistral3,
    kMistral4,
    within("Mistral3ForConditionalGeneration", "Ministral 3, Devstral 2, text", kMinistral3,
           "ministral3"),
    within("Mistral3ForConditionalGeneration", "Mistral Small 3.1, 3.2, text", kMistral, "mistral"),
    within("Mistral3ForConditionalGeneration", "Mistral Small 4, text", kMistral4, "mistral4"),
    FamilyTraits{.architecture = "Phi3ForCausalLM",
                 .models = "Phi-3, Phi-3.5-mini, Phi-4, Phi-4-mini",
                 .sizes = {.rms_norm_eps = 1e-5},
                 .windows = WindowRule::kEveryLayer,
                 .fuses_qkv = true,
                 .fuses_gate_up = true,
                 .read_own = read_phi3},
    FamilyTraits{.architecture = "Glm4MoeForCausalLM",
                 .models = "GLM-4.5, 4.6, 4.7, Air",
                 .sizes = {.rms_norm_eps = 1e-5},
                 .qk_norm = QkNorm::kPerHead,
                 .has_qk_norm = {false, "use_qk_norm"},
                 .qkv_bias = kAttentionBias,
                 .rotated_part = 0.5,
                 .mtp = MtpLayers::kNextNumbers,
                 .num_mtp_layers = 1,
                 .read_moe = read_glm4_moe},
    FamilyTraits{.architecture = "Glm4MoeLiteForCausalLM",
                 .models = "GLM-4.7-Flash",
                 .sizes = {.head_dim = kHeadDimOfMla, .rms_norm_eps = 1e-5},
                 .mtp = MtpLayers::kNextNumbers,
                 .read_mla = read_deepseek_mla,
                 .read_moe = read_glm4_moe_lite},
    FamilyTraits{.architecture = "MiniMaxM2ForCausalLM",
                 .models = "MiniMax-M2, M2.1, M2.5",
                 .sizes = {.head_dim = 128},
                 .qk_norm = QkNorm::kWholeWidth,
                 .theta = 5e6,
                 .renames = kMiniMaxNames,
                 .read_moe = read_minimax_m2_moe},
    kOlmo2,
    with(named("Olmo3ForCausalLM", "OLMo 3", kOlmo2),
         [](FamilyTraits& olmo) {
           olmo.windows = WindowRule::kByLayerType;
           olmo.window = 4096;
           olmo.window_pattern = 4;
           olmo.ropes = RopeRule::kByLayerType;
           olmo.theta = 5e5;
         }),
    FamilyTraits{.architecture = "SmolLM3ForCausalLM",
                 .models = "SmolLM3",
                 .sizes = {.num_kv_heads = 4},
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .mlp_bias = kMlpBias,
                 .ties_embeddings = true,
                 .ropes = RopeRule::kAllButListed,
                 .theta = 2e6,
                 .read_own = read_smollm3},
    FamilyTraits{.architecture = "SeedOssForCausalLM",
                 .models = "Seed-OSS-36B",
                 .sizes = {.num_kv_heads = 8, .head_dim = 128},
                 .qkv_bias = {true, "attention_bias"},
                 .o_bias = {false, "attention_out_bias"},
                 .mlp_bias = kMlpBias},
    FamilyTraits{.architecture = "GraniteForCausalLM",
                 .models = "Granite 3, dense",
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .mlp_bias = kMlpBias,
                 .has_multipliers = true},
    named("KimiK2ForCausalLM", "Kimi K2 under its own name", kDeepseekV3),
    within("KimiK25ForConditionalGeneration", "Kimi K2.5, K2.6, text", kKimi),
    within("Kimi_K25ForConditionalGeneration", "Kimi K2.5 as transformers saves it", kKimi),
    FamilyTraits{.architecture = "Glm4ForCausalLM",
                 .models = "GLM-4-0414, GLM-Z1",
                 .sizes = {.num_kv_heads = 2, .head_dim = 128, .rms_norm_eps = 1.5625e-7},
                 .norms = kGlm4Norms,
                 .qkv_bias = {true, "attention_bias"},
                 .rotated_part = 0.5,
                 .rotary_pairs = RotaryPairs::kNeighbours,
                 .fuses_gate_up = true},
    FamilyTraits{.architecture = "HunYuanDenseV1ForCausalLM",
                 .models = "Hunyuan 0.5B to 7B, Hunyuan-MT",
                 .sizes = {.rms_norm_eps = 1e-5},
                 .qk_norm = QkNorm::kRotatedHeads,
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .renames = kHunyuanNames,
                 .read_own = read_hunyuan_dense},
    FamilyTraits{.architecture = "HYV3ForCausalLM",
                 .models = "Hy3",
                 .sizes = {.num_kv_heads = 8, .head_dim = 128, .rms_norm_eps = 1e-5},
                 .qk_norm = QkNorm::kPerHead,
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .theta = 11158840.0,
                 .mtp = MtpLayers::kNextNumbers,
                 .renames = kHy3Names,
                 .read_moe = read_hy_v3_moe},
    kErnie,
    with(named("Ernie4_5_MoeForCausalLM", "ERNIE-4.5-21B-A3B, 300B-A47B", kErnie),
         [](FamilyTraits& ernie) {
           ernie.sizes = {.num_kv_heads = 4, .rms_norm_eps = 1e-5};
           ernie.mtp = MtpLayers::kByPrefix;
           ernie.renames = kErnieNames;
           ernie.read_moe = read_ernie_moe;
         }),
    FamilyTraits{.architecture = "LagunaForCausalLM",
                 .models = "Laguna XS.2, M.1, S-2.1",
                 .sizes = {.num_heads = 48, .num_kv_heads = 8, .head_dim = 128},
                 .qk_norm = QkNorm::kPerHead,
                 .output_gate = {GateWidth::kPerHead, GateFunction::kSoftplus},
                 .qkv_bias = kAttentionBias,
                 .o_bias = kAttentionBias,
                 .windows = WindowRule::kByLayerType,
                 .window = 512,
                 .window_pattern = 1,
                 .ropes = RopeRule::kByLayerType,
                 .theta = 5e5,
                 .window_theta = 1e4,
                 .rotated_part = 0.5,
                 .window_rotated_part = 1.0,
                 .renames = kLagunaNames,
                 .read_moe = read_laguna_moe,
                 .read_own = read_laguna},
    FamilyTraits{
        .architecture = "MiMoV2FlashForCausalLM",
        .models = "MiMo-V2-Flash",
        .sizes = {.num_heads = 64, .num_kv_heads = 4, .head_dim = 192, .rms_norm_eps = 1e-5},
        .qkv_bias = kAttentionBias,
        .windows = WindowRule::kHybrid,
        .window = 129,
        .ropes = RopeRule::kByLayerType,
        .theta = 5e6,
        .window_theta = 1e4,
        .rotated_part = 0.334,
        .mtp = MtpLayers::kByPrefix,
        .renames = kMimoNames,
        .read_moe = read_mimo_v2_moe,
        .read_own = read_mimo_v2},
    FamilyTraits{.architecture = "GptOssForCausalLM",
                 .models = "gpt-oss-20b, gpt-oss-120b",
                 .sizes = {.num_kv_heads = 8, .head_dim = 64, .rms_norm_eps = 1e-5},
                 .qkv_bias = {true, "attention_bias"},
                 .o_bias = {true, "attention_bias"},
                 .windows = WindowRule::kByLayerType,
                 .window = 128,
                 .window_pattern = 2,
                 .theta = 150000.0,
                 .renames = kGptOssNames,
                 .transposes_experts = true,
                 .interleaves_gate_up = true,
                 .read_moe = read_gpt_oss_moe,
                 .read_own = read_gpt_oss},
    kMuse,
    kLlama4,
    within("Llama4ForConditionalGeneration", "Llama 4 Scout, Maverick, text", kLlama4),
    FamilyTraits{.architecture = "Exaone4ForCausalLM",
                 .models = "EXAONE 4",
                 .sizes = {.rms_norm_eps = 1e-5},
                 .norms = kOutputNorms,
                 .qk_norm = QkNorm::kPerHead,
                 .windows = WindowRule::kByLayerType,
                 .window = 4096,
                 .window_pattern = 4,
                 .ropes = RopeRule::kWindowsOnly},
    kLfm2,
    with(named("Lfm2MoeForCausalLM", "LFM2-8B-A1B", kLfm2),
         [](FamilyTraits& lfm) {
           lfm.read_moe = read_lfm2_moe;
           lfm.read_own = nullptr;
         }),
    kQwen3_5,
    within("Qwen3_5ForConditionalGeneration", "Qwen3.5, 3.6, text", kQwen3_5),
    kQwen3_5Moe,
    within("Qwen3_5MoeForConditionalGeneration", "Qwen3.5, 3.6 with experts, text", kQwen3_5Moe),
    with(named("Qwen3NextForCausalLM", "Qwen3-Next, Qwen3-Coder-Next", kQwen3_5Moe),
         [](FamilyTraits& qwen) {
           qwen.sizes.intermediate_size = 5632;
           qwen.read_moe = read_qwen3_next_moe;
         }),
};

}  // namespace

const FamilyTraits* find_family(std::string_view architecture, std::string_view text_type) {
  const auto found = std::ranges::find_if(kFamilies, [&](const FamilyTraits& family) {
    return family.architecture == architecture &&
           (family.text_type.empty() || family.text_type == text_type);
  });
  return found == kFamilies.end() ? nullptr : &*found;
}

std::span<const FamilyTraits> all_families() {
  return kFamilies;
}

int num_architectures() {
  int count = 0;
  std::string_view last;  // the rows of one architecture are neighbours
  for (const FamilyTraits& family : kFamilies) {
    if (family.architecture != last) ++count;
    last = family.architecture;
  }
  return count;
}

}  // namespace quire
