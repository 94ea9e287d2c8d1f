// Which block holds which tokens.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kv/block_hash.h"
#include "kv/block_pool.h"

namespace quire {

// Maps the hash of a full block to the block that holds its keys and values. A block stays known
// after its last holder has released it, until the pool hands it out again and evict() is called.
// The order of eviction is the pool's free list. A sequence releases the blocks of a chain after
// their children, so a chain is evicted from its deep end, except for blocks that a window has left
// behind. A block that outlives its parent is never wrong, because a hash names the whole chain.
class PrefixCache {
 public:
  explicit PrefixCache(int num_blocks);

  int num_cached() const { return static_cast<int>(blocks_.size()); }
  bool contains(int32_t block_id) const;
  std::optional<int32_t> find(const BlockHash& hash) const;

  // Makes a block known. Where the hash already has a block, that one stays, and this one remains
  // private to its holder: block tables are append-only, so holders never swap blocks.
  void insert(const BlockHash& hash, int32_t block_id);
  // Forgets a block that is about to be overwritten, if it is known.
  void evict(int32_t block_id);

  void check_invariants() const;

 private:
  // A cryptographic hash is its own hash value.
  struct FirstBytes {
    size_t operator()(const BlockHash& hash) const;
  };

  std::unordered_map<BlockHash, int32_t, FirstBytes> blocks_;
  std::vector<const BlockHash*> hashes_;  // of each block id: the map's key, null when unknown
};

}  // namespace quire
