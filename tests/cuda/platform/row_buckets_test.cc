// The row buckets that an engine measures at start include those of all its steps: needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cuda/ops/gemm_runner.h"

namespace quire::cuda {
namespace {

TEST(RowBuckets, AreAllThatAStepFallsInto) {
  for (const int max_rows : {1, 2, 3, 16, 17, 100, 256, 1000, 8192, 8200}) {
    const std::vector<int> buckets = row_buckets(max_rows);
    EXPECT_TRUE(std::ranges::is_sorted(buckets, std::ranges::less_equal()));
    EXPECT_EQ(buckets.back(), max_rows);
    for (int rows = 1; rows <= max_rows; ++rows) {
      const auto bucket = static_cast<int>(std::min<int64_t>(row_bucket(rows), max_rows));
      ASSERT_THAT(buckets, ::testing::Contains(bucket)) << rows;
    }
  }
  EXPECT_THAT(row_buckets(600), ::testing::ElementsAre(1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 112, 128,
                                                       192, 256, 320, 384, 448, 512, 600));
}

}  // namespace
}  // namespace quire::cuda
