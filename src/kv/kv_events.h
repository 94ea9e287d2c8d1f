// The changes of the prefix caches of an engine, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kv/block_pool.h"

namespace quire {

// Adjacent blocks of one sequence that a table has cached. Their keys and values are written before
// the next step.
struct BlocksStored {
  int table = 0;
  std::vector<BlockHash> hashes = {};
  std::optional<BlockHash> parent = {};  // hash of the block before them; absent: they are first
  std::vector<int32_t> token_ids = {};   // of all blocks
  std::string salt = {};                 // covered by the first block's hash; empty: none
  std::vector<int32_t> ahead = {};       // tokens after each block, covered by its hash
};

// Blocks that a table has evicted.
struct BlocksRemoved {
  int table = 0;
  std::vector<BlockHash> hashes = {};
};

// Every table has lost its blocks.
struct AllBlocksCleared {};

using KvEvent = std::variant<BlocksStored, BlocksRemoved, AllBlocksCleared>;

}  // namespace quire
