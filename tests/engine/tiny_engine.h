// The whole engine over a tiny random model, which runs in milliseconds without fakes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine.h"
#include "support/value_of.h"

namespace quire::testing {

// Writes a config.json and returns its path.
std::string write_config(const std::string& name, const std::string& json);

// The path of a config.json for dummy weights and no tokenizer: 2 layers, hidden size 64, 4 heads
// of 16 on 2 KV heads, vocabulary 96, context 512.
std::string tiny_config_path();

EngineConfig tiny_config();
// The config of a model with 4 layers, every second of which has a sliding window of 40 positions.
// It has two block tables, one of which frees the blocks that leave the window.
EngineConfig tiny_windows_config();

// The config of a model with 4 layers, every second of which is a mixture of 8 experts.
EngineConfig tiny_experts_config();
// The config of a DeepSeek-V2 with 4 layers, the first of which is dense.
EngineConfig tiny_deepseek_config();

// The config of a model with 4 layers, every second of which is a short convolution.
EngineConfig tiny_hybrid_config();
// The config of a model with 4 layers, every second of which is a gated delta net.
EngineConfig tiny_delta_config();
EngineConfig tiny_delta_experts_config();
// tiny_delta_config() with three value heads per key head, in the order of GGUF files.
EngineConfig tiny_tiled_config();

// The config of a Gemma 4 with everything that its sizes have together: 4 layers, heads of 512
// without a window and of 16 with one, whose cache the last two layers share, inputs of each layer,
// and 8 experts beside the MLP.
EngineConfig tiny_gemma4_config();

// The config of a tiny model that embeds prompts: 2 layers, 4 heads of 8 on 2 KV heads, hidden size
// 32, context 1024.
EngineConfig embedding_config();

// Fails the test by an exception if the engine does not start.
std::unique_ptr<Engine> make_engine(const EngineConfig& config);

// A greedy request of exactly max_tokens tokens.
Request greedy(std::vector<int32_t> prompt, int max_tokens);

// `length` ids, which depend only on `salt`.
std::vector<int32_t> tiny_prompt(int length, uint64_t salt);

// The accumulated output of one sample.
struct Collected {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;
  std::optional<FinishReason> finish_reason;
  std::string stop_reason;
  int num_cached_tokens = 0;
  Status error;
};

// The outputs of a request's n samples, by index.
std::vector<Collected> collect_all(RequestStream& stream);
Collected collect(RequestStream& stream);

// A request for the embedding of a prompt.
Request embed(std::vector<int32_t> prompt, int dimensions = 0);
// The embeddings of prompts of 1 to 1,024 tokens, which are submitted at once.
std::vector<std::vector<float>> embed_prompts(Engine& engine);

// Submits all requests at once and waits for them.
std::vector<Collected> run_all(Engine& engine, const std::vector<Request>& requests);

// Compares tokens, finish reasons and the bits of log probabilities.
void expect_same(const std::vector<Collected>& got, const std::vector<Collected>& expected);

// The statistics when nothing runs and the last step has been counted.
EngineStats stats_at_rest(const Engine& engine);

}  // namespace quire::testing
