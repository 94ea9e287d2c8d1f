#include "engine/tiny_families.h"

#include <fmt/format.h>

#include "engine/tiny_engine.h"

namespace quire::testing {

#define QUIRE_LATENT                                                                 \
  R"("num_key_value_heads": 8, "kv_lora_rank": 32, "qk_nope_head_dim": 16,)"         \
  R"("qk_rope_head_dim": 8, "v_head_dim": 24, "n_routed_experts": 8,)"               \
  R"("n_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 48,)" \
  R"("first_k_dense_replace": 1,)"

#define QUIRE_GEMMA4                                                                          \
  R"("num_key_value_heads": 2, "head_dim": 16, "global_head_dim": 32, "sliding_window": 20,)" \
  R"("rope_parameters": {"full_attention": {"rope_type": "proportional",)"                    \
  R"("partial_rotary_factor": 0.25, "rope_theta": 1e6},)"                                     \
  R"("sliding_attention": {"rope_theta": 1e4}},)"

const std::vector<TinyFamily>& tiny_families() {
  static const std::vector<TinyFamily> families = {
      TinyFamily{"LlamaForCausalLM", "llama", R"("num_key_value_heads": 2, "head_dim": 16,)"},
      TinyFamily{"LlamaForCausalLM", "llama_one_kv_head",
                 R"("num_key_value_heads": 1, "head_dim": 16,)"},
      TinyFamily{
          "LlamaForCausalLM", "llama_tied_biased",
          R"("num_key_value_heads": 2, "head_dim": 16, "tie_word_embeddings": true, "attention_bias": true,
                  "mlp_bias": true,)"},
      TinyFamily{"MistralForCausalLM", "mistral",
                 R"("num_key_value_heads": 2, "head_dim": 16, "sliding_window": 20,)"},
      TinyFamily{"Qwen2ForCausalLM", "qwen2", R"("num_key_value_heads": 2, "head_dim": 16,)"},
      TinyFamily{"Qwen3ForCausalLM", "qwen3", R"("num_key_value_heads": 2, "head_dim": 16,)"},
      TinyFamily{"MiMoForCausalLM", "mimo", R"("num_key_value_heads": 2, "head_dim": 16,)"},
      TinyFamily{"MixtralForCausalLM", "mixtral",
                 R"("num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 5,)"},
      TinyFamily{"Qwen3MoeForCausalLM", "qwen3_moe",
                 R"("num_key_value_heads": 2, "head_dim": 16, "num_experts": 8,
                  "num_experts_per_tok": 3, "moe_intermediate_size": 48,
                  "decoder_sparse_step": 2, "norm_topk_prob": true,)"},
      TinyFamily{"DeepseekV2ForCausalLM", "deepseek_v2", QUIRE_LATENT},
      TinyFamily{"DeepseekV2ForCausalLM", "deepseek_v2_q_lora",
                 QUIRE_LATENT R"("q_lora_rank": 24,)"},
      TinyFamily{"DeepseekV3ForCausalLM", "deepseek_v3",
                 QUIRE_LATENT R"("q_lora_rank": 24, "n_group": 4, "topk_group": 2,
                  "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
                  "topk_method": "noaux_tc",)"},
      TinyFamily{"Gemma2ForCausalLM", "gemma2",
                 R"("num_key_value_heads": 2, "head_dim": 16, "sliding_window": 20,
                  "query_pre_attn_scalar": 16, "attn_logit_softcapping": 50.0,
                  "final_logit_softcapping": 30.0,)"},
      TinyFamily{"GptOssForCausalLM", "gpt_oss",
                 R"("num_key_value_heads": 2, "head_dim": 16, "sliding_window": 20,
                  "num_local_experts": 6, "num_experts_per_tok": 2, "rope_scaling": {
                  "rope_type": "yarn", "factor": 8.0, "truncate": false,
                  "original_max_position_embeddings": 16},)"},
      TinyFamily{"Gemma4ForCausalLM", "gemma4",
                 QUIRE_GEMMA4
                 R"("hidden_size_per_layer_input": 0, "attention_k_eq_v": true,
             "num_global_key_value_heads": 1,
             "layer_types": ["sliding_attention", "full_attention", "full_attention"],)"},
      TinyFamily{
          "Gemma4ForCausalLM", "gemma4_moe",
          QUIRE_GEMMA4
          R"("hidden_size_per_layer_input": 0, "attention_k_eq_v": true, "enable_moe_block": true,
             "num_experts": 8, "top_k_experts": 3, "moe_intermediate_size": 48,
             "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],)"},
      TinyFamily{"Gemma4ForCausalLM", "gemma4_shared",
                 QUIRE_GEMMA4
                 R"("hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 101,
             "num_kv_shared_layers": 1, "use_double_wide_mlp": true,
             "layer_types": ["sliding_attention", "full_attention", "full_attention"],)"},
      TinyFamily{"Gemma3ForCausalLM", "gemma3",
                 R"("num_key_value_heads": 2, "head_dim": 16, "sliding_window": 20,
                  "sliding_window_pattern": 2, "query_pre_attn_scalar": 16,)"}};
  return families;
}

#undef QUIRE_LATENT
#undef QUIRE_GEMMA4

EngineConfig config_of(const TinyFamily& family) {
  EngineConfig config = tiny_config();
  config.model = write_config(
      fmt::format("quire_family_{}", family.name),
      fmt::format(R"({{"architectures": ["{}"], {} "hidden_size": 64, "intermediate_size": 112,
          "num_hidden_layers": 3, "num_attention_heads": 8, "vocab_size": 101,
          "max_position_embeddings": 128, "torch_dtype": "float32"}})",
                  family.architecture, family.fields));
  return config;
}

}  // namespace quire::testing
