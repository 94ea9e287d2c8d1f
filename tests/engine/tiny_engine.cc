#include "engine/tiny_engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/eventually.h"
#include "support/scratch_directory.h"
#include "support/shared_data.h"

namespace quire::testing {
namespace {

bool is_idle(const EngineStats& stats) {
  return stats.num_running == 0 && stats.num_waiting == 0;
}

bool same_counts(const EngineStats& a, const EngineStats& b) {
  return a.num_steps == b.num_steps && a.num_device_waits == b.num_device_waits &&
         a.num_device_to_host_copies == b.num_device_to_host_copies;
}

}  // namespace

std::string write_config(const std::string& name, const std::string& json) {
  static const ScratchDirectory scratch;
  return scratch.write(name + ".json", json);
}

std::string tiny_config_path() {
  static const std::string path =
      write_config("quire_tiny", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
      "hidden_act": "silu", "tie_word_embeddings": false, "bos_token_id": 1, "eos_token_id": 2,
      "torch_dtype": "bfloat16"})");
  return path;
}

namespace {

EngineConfig tiny_config_of(const std::string& path) {
  EngineConfig config = tiny_config();
  config.model = path;
  return config;
}

}  // namespace

EngineConfig tiny_windows_config() {
  static const std::string path = write_config("quire_tiny_windows", R"({
      "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
      "max_position_embeddings": 512, "sliding_window": 40, "query_pre_attn_scalar": 16,
      "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "rms_norm_eps": 1e-6,
      "hidden_activation": "gelu_pytorch_tanh", "bos_token_id": 1, "eos_token_id": 2,
      "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

EngineConfig tiny_experts_config() {
  static const std::string path = write_config("quire_tiny_experts", R"({
      "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "num_experts": 8,
      "num_experts_per_tok": 3, "moe_intermediate_size": 48, "decoder_sparse_step": 2,
      "norm_topk_prob": true, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

EngineConfig tiny_hybrid_config() {
  static const std::string path = write_config("quire_tiny_hybrid", R"({
      "architectures": ["Lfm2ForCausalLM"], "model_type": "lfm2",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 96,
      "max_position_embeddings": 4096, "block_auto_adjust_ff_dim": false,
      "layer_types": ["conv", "full_attention", "conv", "full_attention"],
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

namespace {

// `heads`: the numbers of the delta nets' heads.
std::string write_delta_config(const std::string& name, const std::string& heads) {
  return write_config(name, R"({
      "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
      "max_position_embeddings": 4096, "linear_conv_kernel_dim": 4,
      "linear_key_head_dim": 8, "linear_value_head_dim": 12,
      "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16",)" +
                                heads + "}");
}

}  // namespace

EngineConfig tiny_delta_config() {
  static const std::string path = write_delta_config(
      "quire_tiny_delta", R"("linear_num_key_heads": 2, "linear_num_value_heads": 4)");
  return tiny_config_of(path);
}

EngineConfig tiny_tiled_config() {
  static const std::string path = write_delta_config(
      "quire_tiny_tiled", R"("linear_num_key_heads": 2, "linear_num_value_heads": 6,
                             "linear_value_heads_are_tiled": true)");
  return tiny_config_of(path);
}

EngineConfig tiny_delta_experts_config() {
  static const std::string path = write_config("quire_tiny_delta_experts", R"({
      "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text",
      "hidden_size": 64, "num_hidden_layers": 4, "num_experts": 8, "num_experts_per_tok": 3,
      "moe_intermediate_size": 48, "shared_expert_intermediate_size": 32,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 96,
      "max_position_embeddings": 4096, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
      "linear_key_head_dim": 8, "linear_value_head_dim": 12, "linear_conv_kernel_dim": 4,
      "layer_types": ["linear_attention", "full_attention", "linear_attention", "full_attention"],
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

EngineConfig tiny_gemma4_config() {
  static const std::string path = write_config("quire_tiny_gemma4", R"({
      "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "global_head_dim": 512,
      "num_global_key_value_heads": 1, "attention_k_eq_v": true, "vocab_size": 96,
      "max_position_embeddings": 512, "sliding_window": 40, "num_kv_shared_layers": 2,
      "use_double_wide_mlp": false, "hidden_size_per_layer_input": 8,
      "vocab_size_per_layer_input": 96, "enable_moe_block": true, "num_experts": 8,
      "top_k_experts": 3, "moe_intermediate_size": 48, "final_logit_softcapping": 30.0,
      "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                      "full_attention"],
      "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                           "rope_theta": 1e6},
        "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}},
      "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

EngineConfig tiny_deepseek_config() {
  static const std::string path = write_config("quire_tiny_deepseek", R"({
      "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
      "hidden_size": 64, "intermediate_size": 112, "num_hidden_layers": 4,
      "num_attention_heads": 4, "num_key_value_heads": 4, "q_lora_rank": 24, "kv_lora_rank": 32,
      "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 24, "vocab_size": 96,
      "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "n_routed_experts": 8,
      "n_shared_experts": 2, "num_experts_per_tok": 3, "moe_intermediate_size": 48,
      "first_k_dense_replace": 1, "bos_token_id": 1, "eos_token_id": 2,
      "torch_dtype": "bfloat16"})");
  return tiny_config_of(path);
}

EngineConfig tiny_config() {
  EngineConfig config;
  config.model = tiny_config_path();
  config.load_format = "dummy";
  config.num_threads = 2;
  return config;
}

EngineConfig embedding_config() {
  EngineConfig config;
  config.model = source_path("tests/golden/pooling/embedding").string();
  config.device = "cpu";
  config.num_threads = 2;
  config.kv_cache_dtype = "f32";
  return config;
}

std::unique_ptr<Engine> make_engine(const EngineConfig& config) {
  return value_of(Engine::create(config));
}

Request greedy(std::vector<int32_t> prompt, int max_tokens) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.sampling.temperature = 0.0F;
  request.sampling.max_tokens = max_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

Request embed(std::vector<int32_t> prompt, int dimensions) {
  Request request;
  request.prompt_token_ids = std::move(prompt);
  request.embedding = EmbeddingParams{.dimensions = dimensions};
  return request;
}

std::vector<std::vector<float>> embed_prompts(Engine& engine) {
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (const int length : {1, 7, 16, 300, 1024, 40}) {
    streams.push_back(value_of(engine.submit(embed(tiny_prompt(length, 5)))));
  }
  std::vector<std::vector<float>> embeddings;
  for (const auto& stream : streams) {
    while (std::optional<Output> output = stream->next()) {
      EXPECT_TRUE(output->error.ok()) << output->error.message();
      embeddings.push_back(output->embedding);
    }
  }
  return embeddings;
}

std::vector<int32_t> tiny_prompt(int length, uint64_t salt) {
  std::vector<int32_t> ids;
  uint64_t state = salt * 0x9E3779B97F4A7C15ULL + 1;
  for (int i = 0; i < length; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    ids.push_back(static_cast<int32_t>(3 + (state >> 33) % 93));
  }
  return ids;
}

std::vector<Collected> collect_all(RequestStream& stream) {
  std::vector<Collected> samples;
  while (auto output = stream.next()) {
    const auto index = static_cast<size_t>(output->index);
    if (samples.size() <= index) samples.resize(index + 1);
    Collected& sample = samples[index];
    const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    sample.text += output->text;
    append(sample.token_ids, output->token_ids);
    append(sample.logprobs, output->logprobs);
    append(sample.prompt_logprobs, output->prompt_logprobs);
    sample.num_cached_tokens += output->num_cached_tokens;
    if (!output->finish_reason) continue;
    EXPECT_FALSE(sample.finish_reason) << "a sample ended twice";
    sample.finish_reason = output->finish_reason;
    sample.stop_reason = output->stop_reason;
    sample.error = output->error;
  }
  return samples;
}

Collected collect(RequestStream& stream) {
  std::vector<Collected> samples = collect_all(stream);
  EXPECT_EQ(samples.size(), 1U);
  return samples.empty() ? Collected() : std::move(samples.front());
}

std::vector<Collected> run_all(Engine& engine, const std::vector<Request>& requests) {
  std::vector<std::unique_ptr<RequestStream>> streams;
  for (const Request& request : requests) {
    streams.push_back(value_of(engine.submit(request)));
  }
  std::vector<Collected> samples;
  for (const auto& stream : streams) samples.push_back(collect(*stream));
  return samples;
}

void expect_same(const std::vector<Collected>& got, const std::vector<Collected>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE("request " + std::to_string(i));
    EXPECT_TRUE(got[i].error.ok()) << got[i].error.message();
    ASSERT_FALSE(expected[i].token_ids.empty());
    EXPECT_EQ(got[i].token_ids, expected[i].token_ids);
    EXPECT_EQ(got[i].finish_reason, expected[i].finish_reason);
    ASSERT_EQ(got[i].logprobs.size(), expected[i].logprobs.size());
    for (size_t j = 0; j < got[i].logprobs.size(); ++j) {
      const auto is_same = [](const TokenLogprob& a, const TokenLogprob& b) {
        return a.token_id == b.token_id && a.logprob == b.logprob && a.rank == b.rank;
      };
      EXPECT_TRUE(std::ranges::equal(got[i].logprobs[j], expected[i].logprobs[j], is_same))
          << "token " << j;
    }
  }
}

EngineStats stats_at_rest(const Engine& engine) {
  EngineStats last = engine.stats();
  const auto is_at_rest = [&] {
    const EngineStats before = last;
    // Nothing tells that the last step has been counted, except that the counts stay the same.
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    last = engine.stats();
    return is_idle(last) && same_counts(last, before);
  };
  EXPECT_TRUE(eventually(is_at_rest));
  EXPECT_EQ(last.num_free_blocks, last.num_total_blocks);
  return last;
}

}  // namespace quire::testing
