// The requests that benchmarks send, as vLLM defines them: random prompts, ShareGPT's dialogues,
// and recorded traces.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire {
class JsonDocument;
}

namespace quire::bench {

// A request of a dataset: the prompt, as text or ids, and the number of tokens to generate.
struct DatasetRequest {
  std::vector<int32_t> token_ids = {};  // used when text is empty
  std::string text = {};
  int output_len = 0;
  std::optional<double> arrival_s = {};  // only from a trace
};

struct RandomDataset {
  int input_len = 1024;  // tokens
  int output_len = 128;
  double range_ratio = 0.0;  // [0, 1): lengths are uniform in [len * (1 - r), len * (1 + r)]
  int num_prompts = 1000;
  uint64_t seed = 0;
  int vocab_size = 0;

  // The result depends on the fields alone, not on the machine. A prompt is a run of consecutive
  // token ids from a random start, which makes shared prefixes unlikely.
  std::vector<DatasetRequest> sample() const;
  // The longest lengths that sample() may return.
  int max_prompt_len() const;
  int max_output_len() const;
};

// The first two turns of a dialogue: the prompt and its answer.
struct Dialogue {
  std::string prompt;
  std::string completion;
};

// Parses a JSON list of {"conversations": [{"value": "…"}, …]}. Like vLLM, skips entries with fewer
// than two turns.
Result<std::vector<Dialogue>> parse_sharegpt(const JsonDocument& document, std::string_view source);

struct ShareGptDataset {
  int num_prompts = 1000;
  int output_len = 0;  // 0: as long as the dialogue's own answer
  uint64_t seed = 0;
  int max_prompt_len = 1024;
  int max_total_len = 2048;
  std::function<Result<int>(std::string_view text)> count_tokens = {};

  // Shuffles the dialogues, and drops those whose prompt or answer has fewer than 4 tokens or whose
  // lengths exceed the maxima. If too few are left, repeats random ones.
  Result<std::vector<DatasetRequest>> sample(std::vector<Dialogue> dialogues) const;
};

// Returns a uniform number in [0, bound). Unlike the distributions of std, it gives the same values
// on every machine.
uint64_t uniform_below(std::mt19937_64& random, uint64_t bound);

// The requests of a benchmark of a server.
struct ServeDatasetConfig {
  std::string dataset_name = "random";
  std::string dataset_path = {};
  int num_prompts = 1000;
  int input_len = 1024;         // random
  int output_len = 128;         // random
  double range_ratio = 0;       // random
  int sharegpt_output_len = 0;  // 0: as long as the dialogue's own answer
  uint64_t seed = 0;
  bool wants_text = false;  // for chat requests, which cannot have token ids
};

// Queries to the server for facts that only it has; each is sent on demand.
struct ServerQueries {
  std::function<Result<int>()> vocab_size;
  std::function<Result<int>(std::string_view text)> count_tokens = {};
};

Result<std::vector<DatasetRequest>> make_requests(const ServeDatasetConfig& config,
                                                  const ServerQueries& queries);

// Parses lines of {"timestamp_ms", "prompt_token_ids" | "prompt" | "input_length",
// "output_length"}. `source` names the file in errors. A prompt given only by its length gets
// random ids.
Result<std::vector<DatasetRequest>> parse_trace(std::string_view text, std::string_view source,
                                                const ServeDatasetConfig& config,
                                                const ServerQueries& queries);

}  // namespace quire::bench
