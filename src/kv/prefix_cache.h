// The prefix cache: finds a block by the hash of its tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/block_hash.h"
#include "kv/block_pool.h"

namespace quire {

// Maps the hash of a full block to the block that holds its keys and values. A block stays cached
// after its last holder has released it, until the pool allocates it again and evict() is called.
// Eviction follows the order of the pool's free list. A sequence releases a block after the block's
// children, so a chain is evicted from its deep end, except for blocks that a window has left
// behind. A block that outlives its parent is still correct, because a hash covers the whole chain.
class PrefixCache {
 public:
  explicit PrefixCache(int num_blocks);

  int num_cached() const { return static_cast<int>(blocks_.size()); }
  bool contains(int32_t block_id) const;
  std::optional<int32_t> find(const BlockHash& hash) const;

  // Registers a block. If the hash already has a block, that block stays and the new one remains
  // private to its holder: block tables are append-only, so holders never swap blocks.
  void insert(const BlockHash& hash, int32_t block_id);
  // Removes a block that is about to be overwritten, if it is registered.
  void evict(int32_t block_id);

  void check_invariants() const;

 private:
  // The first bytes of a cryptographic hash serve as its table hash.
  struct FirstBytes {
    size_t operator()(const BlockHash& hash) const;
  };

  std::unordered_map<BlockHash, int32_t, FirstBytes> blocks_;
  std::vector<const BlockHash*> hashes_;  // by block id: the map's key; null: not cached
};

}  // namespace quire
