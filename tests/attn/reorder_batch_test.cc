#include "support/reorder_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace quire::testing {
namespace {

using ::testing::ElementsAre;

TEST(ReorderBatch, PutsShortUniformRequestsFirst) {
  const std::vector<int32_t> q_lens = {30, 1, 1, 7, 1};
  const std::vector<int32_t> kv_lens = {30, 9, 8, 70, 50};
  const BatchOrder result = reorder_batch(q_lens, kv_lens, 1);
  EXPECT_THAT(result.order, ElementsAre(1, 2, 4, 0, 3));
  EXPECT_EQ(result.decode.num_reqs, 3);
  EXPECT_EQ(result.decode.num_tokens, 3);
  EXPECT_EQ(result.decode.max_kv_len, 50);
  EXPECT_EQ(result.decode.max_q_len, 1);
  EXPECT_EQ(result.prefill.first_req, 3);
  EXPECT_EQ(result.prefill.first_token, 3);
  EXPECT_EQ(result.prefill.num_tokens, 37);
  EXPECT_EQ(result.prefill.max_q_len, 30);
  EXPECT_EQ(result.prefill.max_kv_len, 70);
}

TEST(ReorderBatch, KeepsUniformVerificationInDecode) {
  const BatchOrder result =
      reorder_batch(std::vector<int32_t>{4, 4, 4}, std::vector<int32_t>{10, 20, 30}, 4);
  EXPECT_EQ(result.decode.num_reqs, 3);
  EXPECT_EQ(result.decode.max_q_len, 4);
  EXPECT_EQ(result.prefill.num_reqs, 0);
}

TEST(ReorderBatch, SendsTheMinorityOfShortLengthsToPrefill) {
  const BatchOrder result =
      reorder_batch(std::vector<int32_t>{1, 4, 4, 3}, std::vector<int32_t>(4, 50), 4);
  EXPECT_THAT(result.order, ElementsAre(1, 2, 0, 3));
  EXPECT_EQ(result.decode.num_reqs, 2);
  // Among lengths with equal numbers of requests, the longer one is chosen.
  const BatchOrder tie = reorder_batch(std::vector<int32_t>{1, 4}, std::vector<int32_t>(2, 50), 4);
  EXPECT_THAT(tie.order, ElementsAre(1, 0));
  EXPECT_EQ(tie.decode.max_q_len, 4);
}

TEST(ReorderBatch, TakesAnEmptyBatch) {
  const BatchOrder result = reorder_batch({}, {}, 1);
  EXPECT_TRUE(result.order.empty());
  EXPECT_EQ(result.decode.num_reqs + result.prefill.num_reqs, 0);
}

// These properties must hold for any batch.
TEST(ReorderBatch, HoldsItsPropertiesOnRandomBatches) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const auto num_reqs = static_cast<size_t>(random() % 20);
    const int max_decode_q_len = static_cast<int>(random() % 5);
    std::vector<int32_t> q_lens, kv_lens;
    for (size_t i = 0; i < num_reqs; ++i) {
      q_lens.push_back(static_cast<int32_t>(random() % (random() % 2 == 0 ? 3 : 40)));
      kv_lens.push_back(q_lens.back() + static_cast<int32_t>(random() % 100));
    }
    const auto [order, decode, prefill] = reorder_batch(q_lens, kv_lens, max_decode_q_len);

    std::vector<int32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int32_t> identity(num_reqs);
    std::iota(identity.begin(), identity.end(), 0);
    ASSERT_EQ(sorted, identity) << "a permutation";
    const auto middle = order.begin() + decode.num_reqs;
    ASSERT_TRUE(std::is_sorted(order.begin(), middle) && std::is_sorted(middle, order.end()))
        << "stable";

    ASSERT_EQ(decode.first_req, 0);
    ASSERT_EQ(prefill.first_req, decode.num_reqs);
    ASSERT_EQ(decode.num_reqs + prefill.num_reqs, static_cast<int>(num_reqs));
    ASSERT_EQ(prefill.first_token, decode.num_tokens);
    ASSERT_EQ(decode.num_tokens + prefill.num_tokens,
              std::accumulate(q_lens.begin(), q_lens.end(), 0));
    ASSERT_EQ(decode.num_tokens, decode.num_reqs * decode.max_q_len) << "uniform";
    bool short_one_left = false;
    for (size_t i = 0; i < num_reqs; ++i) {
      const int q_len = q_lens[static_cast<size_t>(order[i])];
      const bool is_decode = static_cast<int>(i) < decode.num_reqs;
      const PhaseRange& range = is_decode ? decode : prefill;
      if (is_decode) {
        ASSERT_EQ(q_len, decode.max_q_len);
        ASSERT_TRUE(q_len >= 1 && q_len <= max_decode_q_len);
      } else {
        ASSERT_NE(q_len, decode.num_reqs > 0 ? decode.max_q_len : -1);
        short_one_left |= q_len >= 1 && q_len <= max_decode_q_len;
      }
      ASSERT_LE(q_len, range.max_q_len);
      ASSERT_LE(kv_lens[static_cast<size_t>(order[i])], range.max_kv_len);
    }
    ASSERT_FALSE(decode.num_reqs == 0 && short_one_left) << "some short length is always served";
  }
}

}  // namespace
}  // namespace quire::testing
