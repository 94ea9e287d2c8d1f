#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "sample/sampler.h"

namespace quire {
namespace {

TEST(Logprobs, AgreeWithFp64SoftmaxAndAFullSort) {
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 5);
  std::vector<float> logits(1000);
  for (float& x : logits) x = normal(rng);
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x));

  const PositionLogprobs all = compute_logprobs(logits, order[37], 20);
  ASSERT_EQ(all.size(), 21U);
  EXPECT_EQ(all[0].token_id, order[37]);
  EXPECT_EQ(all[0].rank, 38);
  EXPECT_NEAR(all[0].logprob, logits[order[37]] - std::log(sum), 1e-5);
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_EQ(all[i].token_id, order[i - 1]);
    EXPECT_EQ(all[i].rank, static_cast<int>(i));
    EXPECT_NEAR(all[i].logprob, logits[order[i - 1]] - std::log(sum), 1e-5);
  }
}

TEST(Logprobs, HugeAndForbiddenLogitsStayFinite) {
  const float none = -std::numeric_limits<float>::infinity();
  const PositionLogprobs all = compute_logprobs(std::vector<float>{1e30F, none, 1e30F}, 0, 2);
  EXPECT_NEAR(all[0].logprob, -std::log(2.0), 1e-6);
  EXPECT_EQ(all[1].token_id, 0);
  EXPECT_EQ(all[2].token_id, 2);
}

TEST(Logprobs, EqualsAreListedByIdAndShareTheLastRank) {
  const PositionLogprobs all = compute_logprobs(std::vector<float>{1, 3, 2, 3, 3}, 1, 2);
  EXPECT_EQ(all[0].rank, 3);
  EXPECT_EQ(all[1].token_id, 1);
  EXPECT_EQ(all[2].token_id, 3);
}

TEST(Logprobs, NoneOfTheMostLikelyAndMoreThanThereAre) {
  EXPECT_EQ(compute_logprobs(std::vector<float>{1, 2}, 0, 0).size(), 1U);
  EXPECT_EQ(compute_logprobs(std::vector<float>{1, 2}, 0, 9).size(), 3U);
}

}  // namespace
}  // namespace quire
