// The blocks of the paged KV cache: their reference counts and free list, the hashes of full
// blocks, and the prefix cache, which finds a block by its hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace quire {

// Holds the blocks' reference counts, and the unused blocks in the order in which they will be
// allocated: a doubly linked list inside two arrays, so that every operation is O(1). Block 0 is
// the padding page: it is never allocated and marks the end of the list.
class BlockPool {
 public:
  explicit BlockPool(int num_blocks);

  int num_blocks() const { return static_cast<int>(ref_counts_.size()); }
  int num_free() const { return num_free_; }
  int ref_count(int32_t block_id) const;

  // Takes the unused block at the head of the list; its content is lost. The list must not be
  // empty.
  int32_t allocate();
  // Adds a holder. An unused block leaves the list and keeps its content.
  void acquire(int32_t block_id);
  // Removes a holder. After its last holder, the block joins the tail of the list if keep_content
  // is true, and the head otherwise.
  void release(int32_t block_id, bool keep_content);
  // Moves an unused block in the list, before all blocks that release() has kept, but after those
  // that were superseded earlier.
  void supersede(int32_t block_id);

  // Ends the program when the list and the counts disagree.
  void check_invariants() const;

 private:
  void link_before(int32_t block_id, int32_t successor);
  void unlink(int32_t block_id);
  void check_id(int32_t block_id) const;
  // An entry of the list that is not a block: it separates superseded blocks from kept ones.
  int32_t separator() const { return num_blocks(); }

  std::vector<int32_t> next_, prev_;  // links of unused blocks; a used block points at itself
  std::vector<int32_t> ref_counts_;
  int num_free_ = 0;
};

// SHA-256, because an attacker who could make two prefixes collide could read another request's
// cache.
using BlockHash = std::array<std::byte, 32>;

// The value that vLLM uses if PYTHONHASHSEED is not set.
inline constexpr std::string_view kDefaultBlockHashSeed = "vllm-none-hash";

// Returns the parent hash of a sequence's first block: vLLM's NONE_HASH of sha256_cbor for this
// seed.
BlockHash none_hash(std::string_view seed);

// Returns the hash of a block, which covers everything that its keys and values depend on: the
// tokens before it (through the parent's hash), its own tokens, and the tokens after it (`ahead`)
// if its content depends on them. It is vLLM's sha256_cbor: SHA-256 of the canonical CBOR of
// [parent, tokens, extra keys]. Routers compute these hashes for a prompt and find them in the KV
// events. `salt` is the request's cache_salt. Pass it for the first block only.
BlockHash block_hash(const BlockHash& parent, std::span<const int32_t> token_ids,
                     std::span<const int32_t> ahead = {}, std::string_view salt = {});

// Properties of the blocks in one chain of hashes.
struct HashedBlocks {
  BlockHash root = {};       // see none_hash()
  int size = 16;             // tokens
  int num_tokens_ahead = 0;  // tokens after a block that its content depends on
};

// Appends the hashes of the full blocks of token_ids that `hashes` lacks, up to num_blocks of them.
void extend_block_hashes(std::string_view salt, const HashedBlocks& blocks,
                         std::span<const int32_t> token_ids, int num_blocks,
                         std::vector<BlockHash>& hashes);

// Maps the hash of a full block to the block that holds its keys and values. A block stays cached
// after its last holder has released it, until the pool allocates it again and evict() is called.
// Eviction follows the order of the pool's free list. A sequence releases a block after the block's
// children, so a chain is evicted from its end, except for blocks before a window. A block that
// outlives its parent is still correct, because a hash covers the whole chain.
class PrefixCache {
 public:
  explicit PrefixCache(int num_blocks);

  int num_cached() const { return static_cast<int>(blocks_.size()); }
  bool contains(int32_t block_id) const;
  std::optional<int32_t> find(const BlockHash& hash) const;

  // Registers a block. Returns false if the hash already has a block: that block stays, and the new
  // block remains private to its holder. Holders never swap blocks, because block tables are
  // append-only.
  bool insert(const BlockHash& hash, int32_t block_id);
  // Both remove a block, and return its hash if it was registered. evict() is for a block that is
  // about to be overwritten, and records the hash; remove() is for one that its sequence gives up.
  std::optional<BlockHash> evict(int32_t block_id);
  std::optional<BlockHash> remove(int32_t block_id);
  // Returns whether the hash was evicted. The record lacks some hashes that were evicted more than
  // about num_blocks evictions ago.
  bool was_evicted(const BlockHash& hash) const;

  std::vector<BlockHash> hashes() const;  // for tests
  void check_invariants() const;

 private:
  // The first bytes of a cryptographic hash serve as its table hash.
  struct FirstBytes {
    size_t operator()(const BlockHash& hash) const;
  };

  std::unordered_map<BlockHash, int32_t, FirstBytes> blocks_;
  std::vector<const BlockHash*> hashes_;  // by block id: the map's key; null: not cached
  // A hash table of evicted hashes, in which a later hash may replace an earlier one. Bytes 8 to 15
  // of a hash select the entry, bytes 16 to 23 are its value; 0: empty.
  std::vector<uint64_t> evicted_;
};

}  // namespace quire
