// A whole engine over a tiny random model: real code from submit to output, in milliseconds.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quire/engine.h"

namespace quire::testing {

// The path of a config.json: 2 layers, hidden 64, 4 heads of 16 on 2 KV heads, vocabulary 96,
// context 512. Runs with dummy weights and without a tokenizer.
std::string tiny_config_path();

EngineConfig tiny_config();
// The same for a model of 4 layers, every second of which sees 40 positions alone. It has two block
// tables, and one of them forgets blocks.
EngineConfig tiny_windows_config();

std::unique_ptr<Engine> make_engine(const EngineConfig& config);

// `length` ids that depend on `salt` alone.
std::vector<int32_t> tiny_prompt(int length, uint64_t salt);

// All of one answer.
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

// By index of n.
std::vector<Collected> collect_all(RequestStream& stream);
Collected collect(RequestStream& stream);

// Submits all requests at once and waits for all.
std::vector<Collected> run_all(Engine& engine, const std::vector<Request>& requests);

// The statistics once nothing runs and the last step is counted.
EngineStats stats_at_rest(const Engine& engine);

}  // namespace quire::testing
