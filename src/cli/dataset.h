// The workloads of `bench`, by vLLM's definitions.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "quire/status.h"

namespace quire::cli {

// One request: what to read, and how much to write.
struct BenchRequest {
  std::vector<int32_t> prompt_token_ids;
  int output_len = 0;
};

struct RandomDataset {
  int input_len = 1024;  // tokens
  int output_len = 128;
  double range_ratio = 0.0;  // [0, 1): lengths are uniform in [len * (1 - r), len * (1 + r)]
  int num_prompts = 1000;
  uint64_t seed = 0;
  int vocab_size = 0;

  // Equal on every machine for equal fields. A prompt is a run of consecutive token ids from a
  // random start, so that no two share a prefix by accident.
  std::vector<BenchRequest> sample() const;
  // What sample() may draw.
  int max_prompt_len() const;
  int max_output_len() const;
};

// The first two turns of a dialogue: what was asked and what was answered.
struct Dialogue {
  std::string prompt;
  std::string completion;
};

// A JSON list of {"conversations": [{"value": "…"}, …]}; entries of fewer than two turns are
// left out, as vLLM does.
Result<std::vector<Dialogue>> parse_sharegpt(const JsonDocument& document, std::string_view source);

struct ShareGptDataset {
  int num_prompts = 1000;
  int output_len = 0;  // 0: as long as the dialogue's own answer
  uint64_t seed = 0;
  int max_prompt_len = 1024;
  int max_total_len = 2048;
  std::function<Result<std::vector<int32_t>>(std::string_view text)> tokenize;

  // Shuffled, pruned (prompts and answers of at least 4 tokens, within the maxima), and drawn again
  // at random if too few are left.
  Result<std::vector<BenchRequest>> sample(std::vector<Dialogue> dialogues) const;
};

// Uniform in [0, bound), the same on every machine (std's distributions are not).
uint64_t uniform_below(std::mt19937_64& random, uint64_t bound);

}  // namespace quire::cli
