#include "base/byte_budget.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace quire {
namespace {

TEST(ByteBudget, SharesTakeAtMostTheBudgetTogether) {
  const auto budget = std::make_shared<ByteBudget>(10);
  ByteShare first(budget);
  EXPECT_TRUE(first.grow(4));
  {
    ByteShare second(budget);
    EXPECT_FALSE(second.grow(7));
    EXPECT_TRUE(second.grow_to(5));
    EXPECT_TRUE(second.grow_to(6));
    EXPECT_TRUE(second.grow_to(3));  // has more
    EXPECT_EQ(budget->held_bytes(), 10U);
    EXPECT_FALSE(first.grow(1));
  }
  EXPECT_EQ(budget->held_bytes(), 4U);
  EXPECT_FALSE(first.grow(SIZE_MAX));  // must not wrap around
  EXPECT_EQ(budget->held_bytes(), 4U);
}

TEST(ByteBudget, AMoveTakesTheShareAlong) {
  const auto budget = std::make_shared<ByteBudget>(10);
  {
    ByteShare first(budget);
    EXPECT_TRUE(first.grow(10));
    const ByteShare second(std::move(first));
    EXPECT_EQ(budget->held_bytes(), 10U);
  }
  EXPECT_EQ(budget->held_bytes(), 0U);
}

}  // namespace
}  // namespace quire
