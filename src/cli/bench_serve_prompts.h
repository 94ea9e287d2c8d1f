// The requests of `bench serve`: prompts, output lengths and arrival times.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

struct ServePrompt {
  std::vector<int32_t> token_ids;  // used when text is empty
  std::string text;
  int output_len = 0;
  std::optional<double> arrival_s;  // only from a trace
};

struct ServePromptConfig {
  std::string dataset_name = "random";
  std::string dataset_path = {};
  int num_prompts = 1000;
  int input_len = 1024;         // random
  int output_len = 128;         // random
  double range_ratio = 0;       // random
  int sharegpt_output_len = 0;  // 0: as long as the dialogue's own answer
  uint64_t seed = 0;
  bool wants_text = false;  // because a chat request takes no token ids
};

// Facts that only the server can give; each is requested on demand.
struct ServerFacts {
  std::function<Result<int>()> vocab_size;
  std::function<Result<int>(std::string_view text)> count_tokens;
};

Result<std::vector<ServePrompt>> make_prompts(const ServePromptConfig& config,
                                              const ServerFacts& facts);

// Lines of {"timestamp_ms", "prompt_token_ids" | "prompt" | "input_length", "output_length"}.
// `source` names the file in errors. A prompt given only by its length gets random ids.
Result<std::vector<ServePrompt>> parse_trace(std::string_view text, std::string_view source,
                                             const ServePromptConfig& config,
                                             const ServerFacts& facts);

struct CallConfig {
  std::string model;
  bool is_chat = false;
  bool ignore_eos = false;
  double temperature = 0.0;
};
// The body of a streaming request whose last chunk reports the usage.
std::string call_body(const ServePrompt& prompt, const CallConfig& config);

}  // namespace quire::cli
