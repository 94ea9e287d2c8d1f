#include "kv/block_pool.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {
constexpr int32_t kEnd = 0;
}  // namespace

BlockPool::BlockPool(int num_blocks) {
  QUIRE_CHECK(num_blocks >= 2,
              "[kv] the pool is too small; it needs block 0 and at least one to hand out");
  next_.resize(static_cast<size_t>(num_blocks));
  prev_.resize(static_cast<size_t>(num_blocks));
  ref_counts_.resize(static_cast<size_t>(num_blocks));
  next_[kEnd] = prev_[kEnd] = kEnd;
  for (int32_t id = 1; id < num_blocks; ++id) link_before(id, kEnd);
}

int BlockPool::ref_count(int32_t block_id) const {
  check_id(block_id);
  return ref_counts_[static_cast<size_t>(block_id)];
}

int32_t BlockPool::allocate() {
  QUIRE_CHECK(num_free_ > 0, "[kv] the pool is empty");
  const int32_t block_id = next_[kEnd];
  unlink(block_id);
  ref_counts_[static_cast<size_t>(block_id)] = 1;
  return block_id;
}

void BlockPool::acquire(int32_t block_id) {
  check_id(block_id);
  int32_t& count = ref_counts_[static_cast<size_t>(block_id)];
  if (count == 0) unlink(block_id);
  ++count;
}

void BlockPool::release(int32_t block_id, bool keep_content) {
  check_id(block_id);
  int32_t& count = ref_counts_[static_cast<size_t>(block_id)];
  QUIRE_CHECK(count > 0, "[kv] block " + std::to_string(block_id) + " was released twice");
  if (--count == 0) link_before(block_id, keep_content ? kEnd : next_[kEnd]);
}

void BlockPool::link_before(int32_t block_id, int32_t successor) {
  const int32_t predecessor = prev_[static_cast<size_t>(successor)];
  next_[static_cast<size_t>(block_id)] = successor;
  prev_[static_cast<size_t>(block_id)] = predecessor;
  next_[static_cast<size_t>(predecessor)] = block_id;
  prev_[static_cast<size_t>(successor)] = block_id;
  ++num_free_;
}

void BlockPool::unlink(int32_t block_id) {
  int32_t& next = next_[static_cast<size_t>(block_id)];
  int32_t& prev = prev_[static_cast<size_t>(block_id)];
  next_[static_cast<size_t>(prev)] = next;
  prev_[static_cast<size_t>(next)] = prev;
  next = prev = block_id;
  --num_free_;
}

void BlockPool::check_id(int32_t block_id) const {
  QUIRE_CHECK(block_id > 0 && block_id < num_blocks(),
              "[kv] no such block; got " + std::to_string(block_id) + ", expected 1 to " +
                  std::to_string(num_blocks() - 1));
}

void BlockPool::check_invariants() const {
  int num_listed = 0;
  for (int32_t id = next_[kEnd]; id != kEnd; id = next_[static_cast<size_t>(id)]) {
    QUIRE_CHECK(++num_listed < num_blocks(), "[kv] the free list has a loop");
    QUIRE_CHECK(ref_counts_[static_cast<size_t>(id)] == 0, "[kv] a held block is on the free list");
    QUIRE_CHECK(prev_[static_cast<size_t>(next_[static_cast<size_t>(id)])] == id,
                "[kv] the free list's links disagree");
  }
  const auto num_unused = std::count(ref_counts_.begin() + 1, ref_counts_.end(), 0);
  QUIRE_CHECK(num_listed == num_free_ && num_listed == num_unused, "[kv] a block was lost");
  QUIRE_CHECK(ref_counts_[kEnd] == 0, "[kv] the padding page was handed out");
}

namespace {

// Each thread has one digest context, because fetching the algorithm costs more than hashing a
// block.
class Sha256 {
 public:
  Sha256() : algorithm_(EVP_MD_fetch(nullptr, "SHA256", nullptr)), context_(EVP_MD_CTX_new()) {
    QUIRE_CHECK(algorithm_ != nullptr && context_ != nullptr, "[kv] libcrypto offers no SHA-256");
  }
  ~Sha256() {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(algorithm_);
  }
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  BlockHash digest(std::span<const std::byte> head, std::span<const std::byte> tail) {
    BlockHash hash;
    const bool ok =
        EVP_DigestInit_ex2(context_, algorithm_, nullptr) == 1 &&
        EVP_DigestUpdate(context_, head.data(), head.size()) == 1 &&
        EVP_DigestUpdate(context_, tail.data(), tail.size()) == 1 &&
        EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(hash.data()), nullptr) == 1;
    QUIRE_CHECK(ok, "[kv] SHA-256 failed");
    return hash;
  }

 private:
  EVP_MD* algorithm_;
  EVP_MD_CTX* context_;
};

BlockHash sha256(std::span<const std::byte> head, std::span<const std::byte> tail) {
  thread_local Sha256 hasher;
  return hasher.digest(head, tail);
}

}  // namespace

BlockHash root_block_hash(std::string_view salt, int block_size) {
  const std::string head = "quire-kv-block/" + std::to_string(block_size) + "/";
  return sha256(std::as_bytes(std::span(head)), std::as_bytes(std::span(salt)));
}

// Tokens are hashed in the machine's byte order, which is safe because a hash never leaves the
// process.
BlockHash block_hash(const BlockHash& parent, std::span<const int32_t> token_ids) {
  return sha256(parent, std::as_bytes(token_ids));
}

void extend_block_hashes(std::string_view salt, const HashedBlocks& blocks,
                         std::span<const int32_t> token_ids, int num_blocks,
                         std::vector<BlockHash>& hashes) {
  const auto size = static_cast<size_t>(blocks.size);
  const size_t num_hashed = size + static_cast<size_t>(blocks.num_tokens_ahead);
  for (size_t idx = hashes.size(); idx < static_cast<size_t>(num_blocks); ++idx) {
    QUIRE_CHECK(idx * size + num_hashed <= token_ids.size(),
                "[kv] a block to be hashed is not full, or the tokens ahead of it are not known");
    const BlockHash parent = idx == 0 ? root_block_hash(salt, blocks.size) : hashes[idx - 1];
    hashes.push_back(block_hash(parent, token_ids.subspan(idx * size, num_hashed)));
  }
}

size_t PrefixCache::FirstBytes::operator()(const BlockHash& hash) const {
  size_t value = 0;
  std::memcpy(&value, hash.data(), sizeof value);
  return value;
}

PrefixCache::PrefixCache(int num_blocks) : hashes_(static_cast<size_t>(num_blocks)) {}

bool PrefixCache::contains(int32_t block_id) const {
  return hashes_.at(static_cast<size_t>(block_id)) != nullptr;
}

std::optional<int32_t> PrefixCache::find(const BlockHash& hash) const {
  const auto found = blocks_.find(hash);
  if (found == blocks_.end()) return std::nullopt;
  return found->second;
}

void PrefixCache::insert(const BlockHash& hash, int32_t block_id) {
  QUIRE_CHECK(!contains(block_id), "[kv] a cached block was filled again");
  const auto [entry, inserted] = blocks_.try_emplace(hash, block_id);
  if (inserted) hashes_[static_cast<size_t>(block_id)] = &entry->first;
}

void PrefixCache::evict(int32_t block_id) {
  if (!contains(block_id)) return;
  const BlockHash* key = std::exchange(hashes_[static_cast<size_t>(block_id)], nullptr);
  blocks_.erase(blocks_.find(*key));
}

void PrefixCache::check_invariants() const {
  size_t num_hashed = 0;
  for (size_t id = 0; id < hashes_.size(); ++id) {
    if (hashes_[id] == nullptr) continue;
    ++num_hashed;
    const auto found = blocks_.find(*hashes_[id]);
    QUIRE_CHECK(found != blocks_.end() && found->second == static_cast<int32_t>(id),
                "[kv] a block and its hash disagree");
  }
  QUIRE_CHECK(num_hashed == blocks_.size(), "[kv] a hash is cached for a block that has no hash");
  QUIRE_CHECK(hashes_[0] == nullptr, "[kv] the padding page is cached");
}

}  // namespace quire
