#include "kv/block_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
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
  std::vector<int32_t> held;  // one entry per reference
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

std::string hex(const BlockHash& hash) {
  std::string text;
  for (const std::byte byte : hash) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[std::to_integer<int>(byte) >> 4];
    text += kDigits[std::to_integer<int>(byte) & 15];
  }
  return text;
}

std::vector<int32_t> iota_ids(int count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 1);
  return ids;
}

// Ids of every size in CBOR, and a second block.
std::vector<int32_t> ids_of_all_sizes() {
  std::vector<int32_t> ids = {0,      1,          23, 24, 255, 256, 65535, 65536,
                              151643, 2147483647, 7,  8,  9,   10,  11,    12};
  for (int32_t id = 100; id < 116; ++id) ids.push_back(id);
  return ids;
}

std::vector<std::string> hashes_of(std::string_view seed, const std::vector<int32_t>& ids,
                                   std::string_view salt, int num_tokens_ahead) {
  std::vector<BlockHash> hashes;
  extend_block_hashes(salt, {.root = none_hash(seed), .num_tokens_ahead = num_tokens_ahead}, ids, 2,
                      hashes);
  return {hex(hashes[0]), hex(hashes[1])};
}

// Computed with Python's cbor2 and hashlib, by vLLM 0.33's algorithm:
//   h = lambda value: hashlib.sha256(cbor2.dumps(value, canonical=True)).digest()
//   h((parent or h(seed), tuple(ids), extra_keys))
TEST(BlockHash, EqualsThatOfVllm) {
  const std::vector<int32_t> ids = ids_of_all_sizes();
  EXPECT_EQ(hex(none_hash(kDefaultBlockHashSeed)),
            "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0");
  EXPECT_EQ(hex(none_hash("0")),
            "4e1195df020de59e0d65a33a4279f1183e7ae4e5d980e309f8b55adff2e61c3e");
  EXPECT_THAT(hashes_of(kDefaultBlockHashSeed, ids, "", 0),
              ElementsAre("4436a01feb3d173391e89c127fd7ed7b19535742e7edd4c41194512ba6efd448",
                          "3528e44ed2891ca43c1a9576e4345ce75b3741baf12b5f281ebd30dece91bc5f"));
  EXPECT_THAT(hashes_of("42", ids, "", 0),
              ElementsAre("981ad7129d9f32b5344fc667eb3ea358d26afaab8694abbf3a97ddcfb4bcdc6a",
                          "248be780f478ed3f75674b9d89e49409edd16c0249e1586600dd0d73a612b870"));
}

// The extra keys are (("cache_salt", salt),) in the first block, and (those or None, next token)
// with a token ahead.
TEST(BlockHash, EqualsThatOfVllmWithExtraKeys) {
  std::vector<int32_t> ids = ids_of_all_sizes();
  EXPECT_THAT(hashes_of(kDefaultBlockHashSeed, ids, "tenant-é", 0),
              ElementsAre("9d6c6f9a9c13f2a569d0a74d792f64fc6cf746ef37cdb96140054ca459e44eca",
                          "79192bd0befb8042553336c2e14e144d25d385d1824141c544b8e9786b3a5f52"));
  ids.push_back(5);
  EXPECT_THAT(hashes_of(kDefaultBlockHashSeed, ids, "", 1),
              ElementsAre("eec5553180b39df289ec99718b911b229045ff0ba149f7f0279dab9e46f2d845",
                          "0efd573c5df0e7e4544acb84e8e831ca4d56c131b3f4e6daccce881682e7b1d8"));
  EXPECT_THAT(hashes_of(kDefaultBlockHashSeed, ids, "s", 1),
              ElementsAre("2722a1ba5a69a33f995cdb2a1e2bf41f67319e2d7b4c7e652a39a7ef9031894c",
                          "913b52a35e56bcaa51f86d758364dddaa694bcd9b95116afef7ab883c12234bb"));
}

TEST(BlockHash, SeparatesSaltsSizesParentsAndTokens) {
  const std::vector<int32_t> ids = iota_ids(16);
  std::vector<int32_t> other = ids;
  other.back() = -1;
  const BlockHash root = none_hash("");
  const BlockHash first = block_hash(root, ids);
  const std::set<BlockHash> all = {
      root,
      none_hash("a"),
      first,
      block_hash(root, other),
      block_hash(first, ids),
      block_hash(root, std::span(ids).first(15)),
      block_hash(root, std::span(ids).first(15), std::span(ids).last(1)),
      block_hash(root, ids, {}, "a"),
      block_hash(root, ids, {}, "b"),
  };
  EXPECT_EQ(all.size(), 9U);
}

TEST(BlockHash, ExtendsAChainByTheMissingHashes) {
  const std::vector<int32_t> ids = iota_ids(70);
  std::vector<BlockHash> at_once;
  extend_block_hashes("s", {}, ids, 4, at_once);
  std::vector<BlockHash> in_steps;
  for (const int count : {0, 1, 3, 3, 4}) extend_block_hashes("s", {}, ids, count, in_steps);
  EXPECT_EQ(at_once.size(), 4U);
  EXPECT_EQ(at_once, in_steps);
  EXPECT_EQ(at_once[1], block_hash(at_once[0], std::span(ids).subspan(16, 16)));
}

TEST(BlockHash, CoversTheTokensThatABlockDependsOn) {
  std::vector<int32_t> ids = iota_ids(33);
  std::vector<BlockHash> hashes;
  extend_block_hashes("", {.num_tokens_ahead = 1}, ids, 2, hashes);
  ids[16] = ids[32] = 7;
  std::vector<BlockHash> others;
  extend_block_hashes("", {.num_tokens_ahead = 1}, ids, 2, others);
  EXPECT_NE(hashes[0], others[0]);
  EXPECT_NE(hashes[1], others[1]);
  others.clear();
  EXPECT_DEATH(extend_block_hashes("", {.num_tokens_ahead = 1}, iota_ids(32), 2, others),
               "not known");
}

TEST(BlockHashDeathTest, OnlyFullBlocksHaveAHash) {
  std::vector<BlockHash> hashes;
  EXPECT_DEATH(extend_block_hashes("", {}, iota_ids(31), 2, hashes), "is not full");
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<BlockHash> chain(int num_blocks, const char* salt = "") {
  std::vector<int32_t> ids(static_cast<size_t>(num_blocks) * 16, 5);
  std::vector<BlockHash> hashes;
  extend_block_hashes(salt, {}, ids, num_blocks, hashes);
  return hashes;
}

std::vector<int32_t> matched(const PrefixCache& cache, const std::vector<BlockHash>& hashes) {
  std::vector<int32_t> block_ids;
  for (const BlockHash& hash : hashes) {
    const std::optional<int32_t> block_id = cache.find(hash);
    if (!block_id) break;
    block_ids.push_back(*block_id);
  }
  return block_ids;
}

TEST(PrefixCache, FindsTheLongestCachedPrefix) {
  PrefixCache cache(10);
  const auto hashes = chain(4);
  cache.insert(hashes[0], 7);
  cache.insert(hashes[1], 3);
  cache.insert(hashes[3], 4);  // after a gap, so it cannot be found
  cache.check_invariants();
  EXPECT_THAT(matched(cache, hashes), ElementsAre(7, 3));
  EXPECT_THAT(matched(cache, {hashes[1], hashes[0]}), ElementsAre(3, 7));
  EXPECT_THAT(matched(cache, {}), IsEmpty());
}

TEST(PrefixCache, SaltsDoNotShare) {
  PrefixCache cache(10);
  cache.insert(chain(1)[0], 1);
  EXPECT_THAT(matched(cache, chain(1, "mine")), IsEmpty());
}

TEST(PrefixCache, KeepsTheFirstOfTwoBlocksOfOneHash) {
  PrefixCache cache(10);
  const auto hashes = chain(1);
  cache.insert(hashes[0], 1);
  cache.insert(hashes[0], 2);
  EXPECT_EQ(cache.find(hashes[0]), 1);
  EXPECT_FALSE(cache.contains(2));
  cache.evict(2);
  EXPECT_EQ(cache.find(hashes[0]), 1);
  cache.check_invariants();
}

TEST(PrefixCache, DropsEvictedBlocks) {
  PrefixCache cache(10);
  const auto hashes = chain(2);
  cache.insert(hashes[0], 1);
  cache.insert(hashes[1], 2);
  cache.evict(1);
  EXPECT_EQ(cache.find(hashes[0]), std::nullopt);
  EXPECT_EQ(cache.num_cached(), 1);
  EXPECT_THAT(matched(cache, hashes), IsEmpty());
  cache.insert(hashes[0], 9);
  EXPECT_THAT(matched(cache, hashes), ElementsAre(9, 2));
  cache.check_invariants();
}

TEST(PrefixCacheDeathTest, ACachedBlockIsNeverFilledAgain) {
  PrefixCache cache(10);
  const auto hashes = chain(2);
  cache.insert(hashes[0], 1);
  EXPECT_DEATH(cache.insert(hashes[1], 1), "was filled again");
}

TEST(BlockPool, SupersededBlocksAreAllocatedBeforeKeptOnes) {
  BlockPool pool(7);
  allocate_all(pool);
  for (const int32_t id : {1, 2, 3, 4, 5}) pool.release(id, true);
  pool.release(6, false);
  for (const int32_t id : {4, 2, 3}) pool.supersede(id);
  pool.acquire(2);  // used again: it is a kept block from here on
  pool.release(2, true);
  pool.check_invariants();
  EXPECT_EQ(pool.num_free(), 6);
  EXPECT_THAT(allocate_all(pool), ElementsAre(6, 4, 3, 1, 5, 2));
  pool.check_invariants();
}

TEST(PrefixCache, RemembersEvictedHashes) {
  PrefixCache cache(100);
  const auto hashes = chain(4);
  EXPECT_FALSE(cache.was_evicted(hashes[0]));
  cache.insert(hashes[0], 7);
  EXPECT_FALSE(cache.was_evicted(hashes[0]));
  EXPECT_EQ(cache.evict(3), std::nullopt);
  EXPECT_EQ(cache.evict(7), hashes[0]);
  EXPECT_TRUE(cache.was_evicted(hashes[0]));
  EXPECT_FALSE(cache.was_evicted(hashes[1]));
  cache.insert(hashes[2], 8);
  EXPECT_EQ(cache.remove(8), hashes[2]);
  EXPECT_FALSE(cache.was_evicted(hashes[2])) << "its owner gave it up";
}

TEST(PrefixCache, ASmallTableRemembersManyEvictedHashes) {
  PrefixCache cache(4);
  const auto hashes = chain(100);
  for (const BlockHash& hash : hashes) {
    cache.insert(hash, 1);
    cache.evict(1);
  }
  const auto was_evicted = [&](const BlockHash& hash) { return cache.was_evicted(hash); };
  EXPECT_GT(std::ranges::count_if(hashes, was_evicted), 90);
}

}  // namespace

}  // namespace quire
