#include "engine/stop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/machine.h"

namespace quire {
namespace {

constexpr int32_t kEos = 2;

TEST(StopToken, EndOfSequenceEndsUnlessIgnored) {
  SamplingParams params;
  const std::vector<int32_t> eos = {kEos};
  const auto stop = check_stop_token(params, eos, kEos, 1, false);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->reason, FinishReason::kStop);
  EXPECT_EQ(stop->stop_reason, "");
  params.ignore_eos = true;
  EXPECT_FALSE(check_stop_token(params, eos, kEos, 1, false));
}

TEST(StopToken, StopIdSaysWhichOne) {
  SamplingParams params;
  params.stop_token_ids = {7};
  const auto stop = check_stop_token(params, {}, 7, 1, false);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->stop_reason, "7");
}

TEST(StopToken, MinTokensHoldsBothBack) {
  SamplingParams params;
  params.stop_token_ids = {7};
  params.min_tokens = 3;
  const std::vector<int32_t> eos = {kEos};
  EXPECT_FALSE(check_stop_token(params, eos, 7, 2, false));
  EXPECT_FALSE(check_stop_token(params, eos, kEos, 2, false));
  EXPECT_TRUE(check_stop_token(params, eos, 7, 3, false));
}

TEST(StopToken, LengthEndsWhateverMinTokensSays) {
  SamplingParams params;
  params.min_tokens = 9;
  const auto stop = check_stop_token(params, {}, 5, 1, true);
  ASSERT_TRUE(stop);
  EXPECT_EQ(stop->reason, FinishReason::kLength);
}

// Nanoseconds to check 1,000 tokens that are not in `params.stop_token_ids`.
int64_t ns_to_check(const SamplingParams& params) {
  return cpu_ns_of([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(check_stop_token(params, {}, 1, 1, false));
  });
}

TEST(StopToken, ManyStopIdsAreNotScanned) {
  constexpr int32_t kVocabSize = 256000;
  SamplingParams params;
  for (int32_t id = 2; id < kVocabSize; ++id) params.stop_token_ids.push_back(id);
  const int64_t of_scans = cpu_ns_of([&] {
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(std::ranges::count(params.stop_token_ids, i % 2), 0);
    }
  });
  EXPECT_LT(10 * ns_to_check(params), of_scans);
}

std::optional<StopStringMatch> find(std::string_view text, const std::vector<std::string>& stops,
                                    size_t from = 0) {
  StopSearch search(stops);
  search.skip_to(from);
  return search.read(text);
}

size_t held_back(std::string_view text, const std::vector<std::string>& stops) {
  StopSearch search(stops);
  EXPECT_FALSE(search.read(text));
  return search.num_held_back();
}

TEST(StopString, FirstToEndWinsAndLongestOfThoseThatEndTogether) {
  const auto match = find("..xbcd", {"abcd", "bc", "xbc"});
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop_idx, 2U);
  EXPECT_EQ(match->begin, 2U);
  EXPECT_EQ(match->end, 5U);
}

TEST(StopString, TextBeforeTheStartIsNotSearched) {
  EXPECT_FALSE(find("ab..", {"ab"}, 1));
  EXPECT_TRUE(find("abab", {"ab"}, 1));
  EXPECT_FALSE(find("ab", {"ab"}, 7));
}

TEST(StopString, ACopyReadsAheadByItself) {
  StopSearch search(std::vector<std::string>{"abc"});
  EXPECT_FALSE(search.read("ab"));
  EXPECT_TRUE(StopSearch(search).read("abc"));
  EXPECT_EQ(search.num_held_back(), 2U);
  EXPECT_FALSE(search.read("abd"));
  EXPECT_EQ(search.num_held_back(), 0U);
}

TEST(HeldBack, OnlyWhatCouldStillBecomeAStop) {
  const std::vector<std::string> stops = {"Question", "estate"};
  EXPECT_EQ(held_back("The Quest", stops), 5U);  // "Quest" is longer than "est"
  EXPECT_EQ(held_back("The best", stops), 3U);   // "est"
  EXPECT_EQ(held_back("The end.", stops), 0U);
  EXPECT_EQ(held_back("", stops), 0U);
  EXPECT_EQ(held_back("text", {}), 0U);
}

// A reference implementation: the longest stop string at the end of `text`, if any.
std::optional<StopStringMatch> match_at_end(std::string_view text,
                                            const std::vector<std::string>& stops) {
  std::optional<StopStringMatch> longest;
  for (size_t i = 0; i < stops.size(); ++i) {
    if (!text.ends_with(stops[i])) continue;
    const size_t begin = text.size() - stops[i].size();
    if (!longest || begin < longest->begin) longest = {begin, text.size(), i};
  }
  return longest;
}

size_t held_back_by_definition(std::string_view text, const std::vector<std::string>& stops) {
  size_t longest = 0;
  for (const std::string_view stop : stops) {
    for (size_t size = 1; size < stop.size(); ++size) {
      if (text.ends_with(stop.substr(0, size))) longest = std::max(longest, size);
    }
  }
  return longest;
}

TEST(StopString, IsFoundAsTheDefinitionSaysInAnyText) {
  std::mt19937 random(7);
  const auto text_of = [&](size_t size) {
    std::string text(size, 'a');
    for (char& byte : text) byte = "aab"[random() % 3];
    return text;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::string> stops(random() % 4);
    for (std::string& stop : stops) stop = text_of(1 + random() % 9);
    const std::string text = text_of(60);
    StopSearch search(stops);
    for (size_t size = 1; size <= text.size(); ++size) {
      const std::string_view begun = std::string_view(text).substr(0, size);
      const auto expected = match_at_end(begun, stops);
      const auto match = search.read(begun);
      ASSERT_EQ(match.has_value(), expected.has_value()) << begun;
      if (match) {
        EXPECT_EQ(match->stop_idx, expected->stop_idx) << begun;
        EXPECT_EQ(match->begin, expected->begin) << begun;
        EXPECT_EQ(match->end, expected->end) << begun;
        break;
      }
      ASSERT_EQ(search.num_held_back(), held_back_by_definition(begun, stops)) << begun;
    }
  }
}

}  // namespace
}  // namespace quire
