// Detects the end of an answer, and limits the text that may be shown before it.
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

// Checks the newest token: end-of-sequence, a stop id, or no room for another token.
// num_output_tokens includes the newest one. params.stop_token_ids must be sorted (Admission sorts
// them), because the check runs for every token and the list may be as long as the vocabulary.
std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length);

struct StopStringMatch {
  size_t begin = 0;  // byte offset in the text
  size_t end = 0;
  size_t stop_idx = 0;
};

// Searches a growing text for stop strings (Knuth, Morris and Pratt). Each byte is read once, so
// that the cost of a token does not depend on the length of the stop strings. A copy continues from
// the same position and shares the tables.
class StopSearch {
 public:
  explicit StopSearch(std::span<const std::string> stops);

  // No match may begin before `position`. Call it before the first read().
  void skip_to(size_t position) { position_ = position; }
  // Reads the part of `text` that follows the text of the last call; `text` must begin with that
  // text. Returns the stop string that ends first, or the longest of those that end together. A
  // match ends the search.
  std::optional<StopStringMatch> read(std::string_view text);
  // Bytes at the end of the text read so far that could begin a stop string.
  size_t num_held_back() const;

 private:
  struct Stop {
    std::string text;
    // Entry i is the length of the longest proper prefix of text[0, i] that is also its suffix.
    std::vector<size_t> borders;
  };
  static size_t extend(const Stop& stop, size_t num_matched, char next);

  std::shared_ptr<const std::vector<Stop>> stops_;
  std::vector<size_t> num_matched_;  // by stop string: bytes of it at the end of the text
  size_t position_ = 0;              // of the next byte to read
};

}  // namespace quire
