// Whether an answer has ended, and how much of its text may be shown meanwhile. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quire/request.h"

namespace quire {

struct StopDecision {
  FinishReason reason;
  std::string stop_reason;  // the stop string or id; empty for end-of-sequence and length
};

// After the newest token: end-of-sequence, a stop id, or no room for another token.
// num_output_tokens counts the newest one.
std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length);

struct StopStringMatch {
  size_t begin = 0;  // in the text
  size_t end = 0;
  size_t stop_idx = 0;
};

// The stop string that ends first in text[search_from…]; of those that end together, the longest.
std::optional<StopStringMatch> find_stop_string(std::string_view text, size_t search_from,
                                                std::span<const std::string> stops);

// How many bytes at the end of the text could be the beginning of a stop string.
size_t held_back_bytes(std::string_view text, std::span<const std::string> stops);

}  // namespace quire
