#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/step/graph.h"

namespace quire::cuda {
namespace {

using ::testing::ElementsAre;

TEST(GraphBuckets, GrowInStepsAndEndWithTheMost) {
  EXPECT_THAT(graph_buckets(1), ElementsAre(1));
  EXPECT_THAT(graph_buckets(3), ElementsAre(1, 2, 3));
  EXPECT_THAT(graph_buckets(20), ElementsAre(1, 2, 4, 8, 16, 20));
  const std::vector<int> large = graph_buckets(300);
  EXPECT_EQ(large.back(), 300);
  EXPECT_EQ(large[large.size() - 2], 288);
  EXPECT_EQ(graph_buckets(256).size(), 3U + 32U);
}

TEST(GraphBuckets, TheSmallestThatFitsServes) {
  const std::vector<int> buckets = graph_buckets(20);
  EXPECT_EQ(bucket_index(buckets, 1), 0);
  EXPECT_EQ(bucket_index(buckets, 5), 3);
  EXPECT_EQ(bucket_index(buckets, 20), 5);
  EXPECT_EQ(bucket_index(buckets, 21), -1);
}

}  // namespace
}  // namespace quire::cuda
