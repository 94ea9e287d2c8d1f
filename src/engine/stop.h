// Whether an answer has ended, and how much of its text may be shown meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/request.h"

namespace quire {

struct StopDecision {
  FinishReason reason;
  std::string stop_reason;  // the stop string or id; empty for end-of-sequence and length
};

// After the newest token: end-of-sequence, a stop id, or no room for another token.
// num_output_tokens counts the newest one. params.stop_token_ids must be sorted (Admission sorts
// them): there may be as many as the vocabulary has, and the check runs for every token.
std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length);

struct StopStringMatch {
  size_t begin = 0;  // in the text
  size_t end = 0;
  size_t stop_idx = 0;
};

// Searches a growing text for stop strings (Knuth, Morris and Pratt). Each byte is read once, so
// that the cost of a token does not depend on the length of the stop strings. A copy goes on from
// the same place and shares the tables.
class StopSearch {
 public:
  explicit StopSearch(std::span<const std::string> stops);

  // No match begins before this place. For the time before the first read().
  void skip_to(size_t position) { position_ = position; }
  // Reads what `text` has beyond the text of the last call, which it continues. Returns the stop
  // string that ends first; of those that end together, the longest. A match ends the search.
  std::optional<StopStringMatch> read(std::string_view text);
  // Bytes at the end of the text that was read which could be the beginning of a stop string.
  size_t num_held_back() const;

 private:
  struct Stop {
    std::string text;
    // Entry i: the length of the longest text that text[0, i] both begins and ends with, and that
    // is shorter than it.
    std::vector<size_t> borders;
  };
  static size_t extend(const Stop& stop, size_t num_matched, char next);

  std::shared_ptr<const std::vector<Stop>> stops_;
  std::vector<size_t> num_matched_;  // bytes of each stop that the text ends with
  size_t position_ = 0;              // of the next byte to read
};

}  // namespace quire
