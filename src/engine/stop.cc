#include "engine/stop.h"

#include <algorithm>

namespace quire {

std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length) {
  if (num_output_tokens >= params.min_tokens) {
    const bool is_eos = std::ranges::find(eos_ids, token_id) != eos_ids.end();
    if (is_eos && !params.ignore_eos) return StopDecision{FinishReason::kStop, {}};
    if (std::ranges::find(params.stop_token_ids, token_id) != params.stop_token_ids.end()) {
      return StopDecision{FinishReason::kStop, std::to_string(token_id)};
    }
  }
  if (at_max_length) return StopDecision{FinishReason::kLength, {}};
  return std::nullopt;
}

std::optional<StopStringMatch> find_stop_string(std::string_view text, size_t search_from,
                                                std::span<const std::string> stops) {
  std::optional<StopStringMatch> best;
  for (size_t i = 0; i < stops.size(); ++i) {
    const size_t begin = text.find(stops[i], search_from);
    if (begin == std::string_view::npos) continue;
    const StopStringMatch match = {begin, begin + stops[i].size(), i};
    const bool better =
        !best || match.end < best->end || (match.end == best->end && match.begin < best->begin);
    if (better) best = match;
  }
  return best;
}

size_t held_back_bytes(std::string_view text, std::span<const std::string> stops) {
  size_t held_back = 0;
  for (const std::string_view stop : stops) {
    const size_t longest = std::min(text.size(), stop.size() - 1);
    for (size_t length = longest; length > held_back; --length) {
      if (text.ends_with(stop.substr(0, length))) held_back = length;
    }
  }
  return held_back;
}

}  // namespace quire
