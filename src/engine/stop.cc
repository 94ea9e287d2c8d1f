#include "engine/stop.h"

#include <algorithm>

namespace quire {

std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length) {
  if (num_output_tokens >= params.min_tokens) {
    const bool is_eos = std::ranges::find(eos_ids, token_id) != eos_ids.end();
    if (is_eos && !params.ignore_eos) return StopDecision{FinishReason::kStop, {}};
    if (std::ranges::binary_search(params.stop_token_ids, token_id)) {
      return StopDecision{FinishReason::kStop, std::to_string(token_id)};
    }
  }
  if (at_max_length) return StopDecision{FinishReason::kLength, {}};
  return std::nullopt;
}

StopSearch::StopSearch(std::span<const std::string> stops) : num_matched_(stops.size()) {
  std::vector<Stop> all;
  for (const std::string& text : stops) {
    all.push_back({.text = text, .borders = {0}});
    Stop& stop = all.back();
    for (size_t i = 1; i < text.size(); ++i) {
      stop.borders.push_back(extend(stop, stop.borders.back(), text[i]));
    }
  }
  stops_ = std::make_shared<const std::vector<Stop>>(std::move(all));
}

size_t StopSearch::extend(const Stop& stop, size_t num_matched, char next) {
  while (num_matched > 0 && stop.text[num_matched] != next) {
    num_matched = stop.borders[num_matched - 1];
  }
  return stop.text[num_matched] == next ? num_matched + 1 : 0;
}

std::optional<StopStringMatch> StopSearch::read(std::string_view text) {
  std::optional<StopStringMatch> longest;
  while (position_ < text.size() && !longest) {
    const char next = text[position_++];
    for (size_t i = 0; i < stops_->size(); ++i) {
      const Stop& stop = (*stops_)[i];
      num_matched_[i] = extend(stop, num_matched_[i], next);
      if (num_matched_[i] < stop.text.size()) continue;
      const size_t begin = position_ - stop.text.size();
      if (!longest || begin < longest->begin) longest = {begin, position_, i};
    }
  }
  return longest;
}

size_t StopSearch::num_held_back() const {
  return num_matched_.empty() ? 0 : std::ranges::max(num_matched_);
}

}  // namespace quire
