#include "kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace quire {
namespace {

using ::testing::ElementsAre;

std::vector<int32_t> allocate_all(BlockPool& pool) {
  std::vector<int32_t> ids;
  while (pool.num_free() > 0) ids.push_back(pool.allocate());
  return ids;
}

TEST(BlockPool, NeverHandsOutThePaddingPage) {
  BlockPool pool(5);
  EXPECT_EQ(pool.num_free(), 4);
  EXPECT_THAT(allocate_all(pool), ElementsAre(1, 2, 3, 4));
  pool.check_invariants();
}

TEST(BlockPool, ReusesTheLeastRecentlyReleasedFirst) {
  BlockPool pool(5);
  allocate_all(pool);
  for (const int32_t id : {3, 1, 4, 2}) pool.release(id, true);
  pool.check_invariants();
  EXPECT_THAT(allocate_all(pool), ElementsAre(3, 1, 4, 2));
}

TEST(BlockPool, ReusesWorthlessBlocksBeforeAll) {
  BlockPool pool(5);
  allocate_all(pool);
  pool.release(3, true);
  pool.release(1, false);
  pool.release(4, true);
  pool.release(2, false);
  EXPECT_THAT(allocate_all(pool), ElementsAre(2, 1, 3, 4));
}

TEST(BlockPool, ABlockIsFreeWhenItsLastHolderLetsGo) {
  BlockPool pool(3);
  const int32_t id = pool.allocate();
  pool.acquire(id);
  EXPECT_EQ(pool.ref_count(id), 2);
  pool.release(id, true);
  EXPECT_EQ(pool.num_free(), 1);
  pool.release(id, true);
  EXPECT_EQ(pool.num_free(), 2);
  pool.check_invariants();
}

TEST(BlockPool, AnUnusedBlockCanBeTakenFromTheMiddleOfTheList) {
  BlockPool pool(5);
  pool.acquire(2);
  EXPECT_EQ(pool.num_free(), 3);
  pool.check_invariants();
  EXPECT_THAT(allocate_all(pool), ElementsAre(1, 3, 4));
}

TEST(BlockPool, CountsAgreeUnderRandomOperations) {
  std::mt19937 rng(7);
  BlockPool pool(33);
  std::vector<int32_t> held;  // an entry a reference
  for (int i = 0; i < 20000; ++i) {
    const auto op = rng() % 3;
    if (op == 0 && pool.num_free() > 0) {
      held.push_back(pool.allocate());
      ASSERT_EQ(std::ranges::count(held, held.back()), 1);
    } else if (op == 1) {
      held.push_back(static_cast<int32_t>(1 + rng() % 32));
      pool.acquire(held.back());
    } else if (op == 2 && !held.empty()) {
      std::swap(held[rng() % held.size()], held.back());
      pool.release(held.back(), rng() % 2 == 0);
      held.pop_back();
    }
    for (int32_t id = 1; id < pool.num_blocks(); ++id) {
      ASSERT_EQ(pool.ref_count(id), std::ranges::count(held, id));
    }
    pool.check_invariants();
    if (held.size() > 60) {
      for (; held.size() > 5; held.pop_back()) pool.release(held.back(), true);
    }
  }
}

TEST(BlockPoolDeathTest, MisuseEndsTheProgram) {
  BlockPool pool(2);
  EXPECT_DEATH(pool.release(1, true), "released twice");
  EXPECT_DEATH(pool.acquire(0), "no such block; got 0");
  EXPECT_DEATH(pool.acquire(2), "no such block; got 2");
  pool.allocate();
  EXPECT_DEATH(pool.allocate(), "the pool is empty");
  EXPECT_DEATH(BlockPool(1), "at least one to hand out");
}

}  // namespace
}  // namespace quire
