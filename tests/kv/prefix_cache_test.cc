#include "kv/prefix_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<BlockHash> chain(int num_blocks, const char* salt = "") {
  std::vector<int32_t> ids(static_cast<size_t>(num_blocks) * 16, 5);
  std::vector<BlockHash> hashes;
  extend_block_hashes(salt, 16, ids, num_blocks, hashes);
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
  cache.insert(hashes[3], 4);  // behind a gap: out of reach
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

TEST(PrefixCache, ForgetsWhatIsEvicted) {
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
  EXPECT_DEATH(cache.insert(hashes[1], 1), "never filled again");
}

}  // namespace
}  // namespace quire
