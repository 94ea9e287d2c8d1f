#include "platform/drafter.h"

#include <algorithm>
#include <vector>

namespace quire {
namespace {

// The number of tokens before `end` that equal the last tokens of the sequence, at most `most`.
int match_length(std::span<const int32_t> tokens, size_t end, int most) {
  int length = 0;
  while (length < most && static_cast<size_t>(length) < end &&
         tokens[end - 1 - static_cast<size_t>(length)] ==
             tokens[tokens.size() - 1 - static_cast<size_t>(length)]) {
    ++length;
  }
  return length;
}

// Finds the ends of the longest matches, the newest first: at most kMaxVotes, or one without votes.
// Returns the length of these matches.
int find_matches(std::span<const int32_t> tokens, const LookupConfig& config,
                 std::vector<size_t>& ends) {
  const size_t most = config.by_vote ? LookupConfig::kMaxVotes : 1;
  int longest = config.min_match;
  ends.clear();
  for (size_t end = tokens.size(); end-- > 1;) {
    if (tokens[end - 1] != tokens.back()) continue;
    const int length = match_length(tokens, end, config.max_match);
    if (length < longest) continue;
    if (length > longest) ends.clear();
    longest = length;
    if (ends.size() < most) ends.push_back(end);
    if (longest == config.max_match && ends.size() == most) break;
  }
  return longest;
}

// The most frequent token; of equally frequent ones, the first.
int32_t most_frequent(std::span<const int32_t> tokens) {
  int32_t best = tokens.front();
  std::ptrdiff_t best_count = 0;
  for (const int32_t token : tokens) {
    const auto count = std::ranges::count(tokens, token);
    if (count > best_count) best = token;
    best_count = std::max(best_count, count);
  }
  return best;
}

}  // namespace

bool look_up_drafts(std::span<const int32_t> tokens, const LookupConfig& config,
                    std::span<int32_t> drafts, std::span<float> confidences) {
  thread_local std::vector<size_t> ends;
  const int length = find_matches(tokens, config, ends);
  if (ends.empty()) return false;
  thread_local std::vector<int32_t> next;  // by match
  for (size_t i = 0; i < drafts.size(); ++i) {
    const auto token_after = [&](size_t end) {
      return end + i < tokens.size() ? tokens[end + i] : drafts[end + i - tokens.size()];
    };
    next.clear();
    for (const size_t end : ends) next.push_back(token_after(end));
    drafts[i] = most_frequent(next);
    std::erase_if(ends, [&](size_t end) { return token_after(end) != drafts[i]; });
    const float share = static_cast<float>(ends.size()) / static_cast<float>(next.size());
    confidences[i] = share * static_cast<float>(length) / static_cast<float>(length + 1);
  }
  return true;
}

}  // namespace quire
