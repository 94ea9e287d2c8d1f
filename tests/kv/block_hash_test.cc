#include "kv/block_hash.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

namespace quire {
namespace {

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

// Computed with `printf 'quire-kv-block/16/' | sha256sum`.
TEST(BlockHash, IsSha256) {
  EXPECT_EQ(hex(root_block_hash("", 16)),
            "e5eb1ad745c41db27107293fa1c6638add63fee83717034e556104873fe93746");
}

// printf of the root's 32 bytes, then of 01000000 02000000 as bytes, through sha256sum.
TEST(BlockHash, HashesTheParentThenTheTokens) {
  EXPECT_EQ(hex(block_hash(root_block_hash("", 16), std::vector<int32_t>{1, 2})),
            "43ff691ff788e523f9ce9cc18d33680872615f8e73570c2bed6c48668a005cda");
}

TEST(BlockHash, SeparatesSaltsSizesParentsAndTokens) {
  const std::vector<int32_t> ids = iota_ids(16);
  std::vector<int32_t> other = ids;
  other.back() = -1;
  const BlockHash root = root_block_hash("", 16);
  const BlockHash first = block_hash(root, ids);
  const std::set<BlockHash> all = {
      root,
      root_block_hash("", 32),
      root_block_hash("a", 16),
      root_block_hash("6/", 1),  // the size and the salt do not run into each other
      first,
      block_hash(root, other),
      block_hash(first, ids),
      block_hash(root_block_hash("a", 16), ids),
  };
  EXPECT_EQ(all.size(), 8U);
}

TEST(BlockHash, ExtendsAChainByWhatItLacks) {
  const std::vector<int32_t> ids = iota_ids(70);
  std::vector<BlockHash> at_once;
  extend_block_hashes("s", 16, ids, 4, at_once);
  std::vector<BlockHash> in_steps;
  for (const int count : {0, 1, 3, 3, 4}) extend_block_hashes("s", 16, ids, count, in_steps);
  EXPECT_EQ(at_once.size(), 4U);
  EXPECT_EQ(at_once, in_steps);
  EXPECT_EQ(at_once[1], block_hash(at_once[0], std::span(ids).subspan(16, 16)));
}

TEST(BlockHashDeathTest, OnlyFullBlocksHaveAHash) {
  std::vector<BlockHash> hashes;
  EXPECT_DEATH(extend_block_hashes("", 16, iota_ids(31), 2, hashes), "only full blocks");
}

}  // namespace
}  // namespace quire
