#include "engine/tiny_drafters.h"

#include <fmt/format.h>

#include "engine/tiny_engine.h"

namespace quire::testing {

EngineConfig with_drafter(EngineConfig config, const std::string& model, int num_drafts,
                          std::string_view method) {
  config.speculative_config = fmt::format(
      R"({{"method": "{}", {} "num_speculative_tokens": {},
           "enable_adaptive_verification": false}})",
      method, model.empty() ? "" : fmt::format(R"("model": "{}",)", model), num_drafts);
  return config;
}

std::vector<Request> greedy_requests() {
  std::vector<Request> all;
  for (int i = 0; i < 24; ++i) {
    std::vector<int32_t> prompt = tiny_prompt(16 * (1 + i % 5), static_cast<uint64_t>(i % 3));
    const std::vector<int32_t> own = tiny_prompt(i % 20, static_cast<uint64_t>(100 + i));
    prompt.insert(prompt.end(), own.begin(), own.end());
    all.push_back(greedy(std::move(prompt), 1 + (i * 7) % 60));
  }
  return all;
}

std::vector<Request> sampled_requests() {
  std::vector<Request> all = greedy_requests();
  for (size_t i = 0; i < all.size(); ++i) {
    SamplingParams& sampling = all[i].sampling;
    sampling.seed = i;
    sampling.logprobs = 1;
    sampling.temperature = i % 3 == 0 ? 0.0F : 0.8F;
    if (i % 4 == 0) sampling.repetition_penalty = 1.3F;
    if (i % 5 == 0) sampling.prompt_logprobs = 1;
    if (i % 6 == 0) sampling.ignore_eos = false;
  }
  return all;
}

EngineConfig eagle_target() {
  static const std::string path = write_config("quire_eagle_target", R"({
      "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
      "intermediate_size": 112, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 8, "max_position_embeddings": 512,
      "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
      "torch_dtype": "bfloat16"})");
  EngineConfig config = tiny_config();
  config.model = path;
  return config;
}

std::string eagle_head(int vocab_size) {
  static const std::string format = R"({{
      "architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", "hidden_size": 64,
      "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": {}, "draft_vocab_size": 6,
      "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "hidden_act": "silu", "tie_word_embeddings": false, "torch_dtype": "bfloat16",
      "eagle_config": {{"eagle_aux_hidden_state_layer_ids": [0, 2, 3]}}}})";
  return write_config(fmt::format("quire_eagle_head_{}", vocab_size),
                      fmt::format(fmt::runtime(format), vocab_size));
}

std::vector<Request> eagle_requests() {
  std::vector<Request> all = sampled_requests();
  for (Request& request : all) {
    for (int32_t& id : request.prompt_token_ids) id %= 8;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = 40;
  }
  return all;
}

EngineConfig mimo_target(int num_mtp_layers) {
  const std::string json = fmt::format(
      R"({{"architectures": ["MiMoForCausalLM"], "model_type": "mimo", "hidden_size": 64,
      "intermediate_size": 112, "num_hidden_layers": 4, "num_attention_heads": 4,
      "num_key_value_heads": 2, "vocab_size": 8, "max_position_embeddings": 512,
      "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "attention_bias": true,
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
      "num_nextn_predict_layers": {}, "torch_dtype": "bfloat16"}})",
      num_mtp_layers);
  EngineConfig config = tiny_config();
  config.model = write_config(fmt::format("quire_mimo_{}", num_mtp_layers), json);
  return config;
}

EngineConfig qwen_target(bool has_experts, int k_dim, int v_dim) {
  constexpr std::string_view kExperts =
      R"("num_experts": 8, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
      "shared_expert_intermediate_size": 32,)";
  const std::string json = fmt::format(
      R"({{"architectures": ["Qwen3_5{}ForCausalLM"], "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 8,
      "intermediate_size": 112, {} "max_position_embeddings": 512,
      "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": {},
      "linear_value_head_dim": {}, "linear_conv_kernel_dim": 4,
      "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
      "mtp_num_hidden_layers": 1, "mtp_use_dedicated_embeddings": false,
      "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
      "torch_dtype": "bfloat16"}})",
      has_experts ? "Moe" : "", has_experts ? kExperts : "", k_dim, v_dim);
  EngineConfig config = tiny_config();
  config.model = write_config(fmt::format("quire_qwen_{}_{}_{}", has_experts, k_dim, v_dim), json);
  return config;
}

namespace {

// The fields that a target and its drafter have in common.
std::string gemma4_layers_json(std::string_view own) {
  return fmt::format(R"("num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
      "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": true,
      "vocab_size": 8, "max_position_embeddings": 512, "sliding_window": 24, "rope_parameters": {{
        "full_attention": {{"rope_type": "proportional", "partial_rotary_factor": 0.25,
                            "rope_theta": 1e4}},
        "sliding_attention": {{"rope_type": "default", "rope_theta": 1e3}}}},
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16", {})",
                     own);
}

}  // namespace

EngineConfig gemma4_target() {
  EngineConfig config = tiny_config();
  config.model =
      write_config("quire_gemma4_target",
                   fmt::format(R"({{"architectures": ["Gemma4ForCausalLM"], {}}})",
                               gemma4_layers_json(R"("hidden_size": 64, "intermediate_size": 112,
      "num_hidden_layers": 4, "num_kv_shared_layers": 2, "hidden_size_per_layer_input": 8,
      "vocab_size_per_layer_input": 8, "final_logit_softcapping": 30.0, "layer_types":
      ["sliding_attention", "full_attention", "sliding_attention", "full_attention"])")));
  return config;
}

std::string gemma4_drafter() {
  return write_config("quire_gemma4_drafter",
                      fmt::format(R"({{"architectures": ["Gemma4AssistantForCausalLM"],
      "backbone_hidden_size": 64, "tie_word_embeddings": true, "text_config": {{{}}}}})",
                                  gemma4_layers_json(R"("hidden_size": 48, "intermediate_size": 80,
      "num_hidden_layers": 3, "num_kv_shared_layers": 3, "hidden_size_per_layer_input": 0,
      "layer_types": ["sliding_attention", "sliding_attention", "full_attention"])")));
}

namespace {

std::string block_layers_json(int vocab_size) {
  return fmt::format(
      R"("model_type": "qwen3", "hidden_size": 64, "head_dim": 16, "intermediate_size": 96,
      "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
      "vocab_size": {}, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false)",
      vocab_size);
}

}  // namespace

std::string block_drafter(std::string_view method, int vocab_size) {
  const std::string json = fmt::format(
      R"({{"architectures": ["{}"], {}, "torch_dtype": "bfloat16", "num_target_layers": 4,
      "block_size": 8, "markov_rank": {}, "dflash_config": {{"mask_token_id": 3,
      "target_layer_ids": [-1, 1, 3]}}}})",
      method == "dflash" ? "DFlashDraftModel" : "Qwen3DSparkModel", block_layers_json(vocab_size),
      method == "dflash" ? 0 : 24);
  return write_config(fmt::format("quire_block_{}_{}", method, vocab_size), json);
}

std::string speculators_block_drafter(std::string_view method) {
  const std::string json = fmt::format(
      R"({{"speculators_model_type": "{}", "transformer_layer_config": {{{}}},
      "torch_dtype": "bfloat16", "draft_vocab_size": 6, "block_size": 8, "markov_rank": {},
      "mask_token_id": 3, "aux_hidden_state_layer_ids": [0, 2, 4]}})",
      method, block_layers_json(8), method == "dflash" ? 0 : 24);
  return write_config(fmt::format("quire_speculators_{}", method), json);
}

}  // namespace quire::testing
