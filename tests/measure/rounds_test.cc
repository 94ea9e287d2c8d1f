#include "measure/rounds.h"

#include <gmock/gmock.h>

#include <array>
#include <limits>
#include <thread>

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Gives each candidate its times in turn, and records who ran.
struct Script {
  std::vector<std::vector<double>> times;
  std::vector<size_t> order = {};
  std::vector<size_t> next = std::vector<size_t>(times.size());

  std::function<Result<double>(size_t)> timer() {
    return [this](size_t i) -> Result<double> {
      order.push_back(i);
      const double time = times[i][next[i]++ % times[i].size()];
      if (time < 0) return internal_error("[test] it failed");
      return time;
    };
  }
};

TEST(Median, IsTheUpperMiddle) {
  EXPECT_EQ(median({3}), 3);
  EXPECT_EQ(median({4, 1}), 4);
  EXPECT_EQ(median({9, 1, 5}), 5);
}

TEST(Trial, StatesShortestAndScatter) {
  EXPECT_EQ(Trial{}.shortest(), std::numeric_limits<double>::infinity());
  EXPECT_EQ((Trial{.times = {3, 2, 4}}.shortest()), 2);
  EXPECT_EQ((Trial{.times = {3}}.scatter()), 0);
  EXPECT_DOUBLE_EQ((Trial{.times = {3, 2, 4}}.scatter()), 0.5);
}

TEST(Compare, AlternatesInEachRound) {
  Script script{{{2}, {1}}};
  const auto result = compare(2, {.num_rounds = 3}, one_by_one(script.timer())).value();
  EXPECT_THAT(script.order, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_THAT(result.trials[0].times, ElementsAre(2, 2, 2));
  EXPECT_EQ(result.fastest(), 1U);
}

TEST(Compare, TakesTheMedianOfTheRounds) {
  Script script{{{1, 9, 9}, {2, 2, 2}}};
  EXPECT_EQ(compare(2, {.num_rounds = 3}, one_by_one(script.timer()))->fastest(), 1U);
}

TEST(Compare, OnlyFinalistsGoOn) {
  Script script{{{1.3}, {1}, {1.05}, {1.2}}};
  const Effort effort = {.num_rounds = 2, .near_best = 1.25, .max_finalists = 2};
  const auto result = compare(4, effort, one_by_one(script.timer())).value();
  EXPECT_THAT(result.finalists, ElementsAre(1, 2));
  EXPECT_THAT(script.order, ElementsAre(0, 1, 2, 3, 1, 2));
}

TEST(Compare, OneFinalistNeedsNoFurtherRound) {
  Script script{{{2}, {1}}};
  const auto result =
      compare(2, {.num_rounds = 5, .near_best = 1.1}, one_by_one(script.timer())).value();
  EXPECT_THAT(script.order, ElementsAre(0, 1));
  EXPECT_EQ(result.fastest(), 1U);
}

// A single candidate is measured for its times.
TEST(Compare, OneCandidateRunsAllRounds) {
  Script script{{{2}}};
  EXPECT_THAT(compare(1, {.num_rounds = 3}, one_by_one(script.timer()))->trials[0].times,
              ElementsAre(2, 2, 2));
}

TEST(Compare, AnEarlierCandidateKeepsThePlaceAgainstASmallGain) {
  const Comparison result = {.trials = {{{1.0}}, {{0.99}}, {{0.97}}}, .finalists = {0, 1, 2}};
  EXPECT_EQ(result.fastest(0.98), 2U);
  EXPECT_EQ(result.fastest(0.9), 0U);
  const Comparison equal = {.trials = {{{1.0}}, {{1.0}}}, .finalists = {0, 1}};
  EXPECT_EQ(equal.fastest(), 0U);
}

TEST(Compare, LeavesOutFailedCandidates) {
  Script script{{{-1}, {2, -1}, {3}}};
  const auto result = compare(3, {.num_rounds = 3}, one_by_one(script.timer())).value();
  EXPECT_THAT(result.finalists, ElementsAre(2));
  EXPECT_THAT(script.order, ElementsAre(0, 1, 2, 1, 2));
  EXPECT_EQ(result.trials[0].error.message(), "[test] it failed");
  EXPECT_THAT(compare(1, {.num_rounds = 2}, one_by_one(Script{{{-1}}}.timer()))->finalists,
              IsEmpty());
}

TEST(Compare, EndsWithAnErrorOfTheRound) {
  Script script{{{1}, {-1}}};
  const auto result = compare(2, {.num_rounds = 3}, one_by_one_or_fail(script.timer()));
  EXPECT_EQ(result.status().code(), StatusCode::kInternal);
  EXPECT_THAT(script.order, ElementsAre(0, 1));
}

TEST(Compare, TheTimeLimitEndsTheRounds) {
  Script script{{{1}, {2}}};
  const Effort effort = {.num_rounds = 100, .time_limit = std::chrono::duration<double>(0)};
  const auto result = compare(2, effort, one_by_one(script.timer())).value();
  EXPECT_THAT(script.order, ElementsAre(0, 1)) << "the first round runs in any case";
  EXPECT_EQ(result.fastest(), 0U);
}

}  // namespace
}  // namespace quire
