#include "engine/stop.h"

#include <gtest/gtest.h>

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

TEST(StopString, FirstToEndWinsAndLongestOfThoseThatEndTogether) {
  const std::vector<std::string> stops = {"abcd", "bc", "xbc"};
  const auto match = find_stop_string("..xbcd", 0, stops);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop_idx, 2U);
  EXPECT_EQ(match->begin, 2U);
  EXPECT_EQ(match->end, 5U);
}

TEST(StopString, TextBeforeTheStartIsNotSearched) {
  const std::vector<std::string> stops = {"ab"};
  EXPECT_FALSE(find_stop_string("ab..", 1, stops));
  EXPECT_TRUE(find_stop_string("abab", 1, stops));
}

TEST(HeldBack, OnlyWhatCouldStillBecomeAStop) {
  const std::vector<std::string> stops = {"Question", "estate"};
  EXPECT_EQ(held_back_bytes("The Quest", stops), 5U);  // "Quest"; "est" is shorter
  EXPECT_EQ(held_back_bytes("The best", stops), 3U);   // "est"
  EXPECT_EQ(held_back_bytes("The end.", stops), 0U);
  EXPECT_EQ(held_back_bytes("", stops), 0U);
}

}  // namespace
}  // namespace quire
