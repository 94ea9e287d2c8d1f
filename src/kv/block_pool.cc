#include "kv/block_pool.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/digest.h"

namespace quire {
namespace {
constexpr int32_t kEnd = 0;
}  // namespace

BlockPool::BlockPool(int num_blocks) {
  QUIRE_CHECK(num_blocks >= 2,
              "[kv] the pool is too small; it needs block 0 and at least one to hand out");
  next_.resize(static_cast<size_t>(num_blocks) + 1);
  prev_.resize(static_cast<size_t>(num_blocks) + 1);
  ref_counts_.resize(static_cast<size_t>(num_blocks));
  next_[kEnd] = prev_[kEnd] = kEnd;
  link_before(separator(), kEnd);
  num_free_ = 0;
  for (int32_t id = 1; id < num_blocks; ++id) link_before(id, separator());
}

int BlockPool::ref_count(int32_t block_id) const {
  check_id(block_id);
  return ref_counts_[static_cast<size_t>(block_id)];
}

int32_t BlockPool::allocate() {
  QUIRE_CHECK(num_free_ > 0, "[kv] the pool is empty");
  const int32_t head = next_[kEnd];
  const int32_t block_id = head == separator() ? next_[static_cast<size_t>(head)] : head;
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

void BlockPool::supersede(int32_t block_id) {
  QUIRE_CHECK(ref_count(block_id) == 0, "[kv] a held block cannot be superseded");
  unlink(block_id);
  link_before(block_id, separator());
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
    QUIRE_CHECK(prev_[static_cast<size_t>(next_[static_cast<size_t>(id)])] == id,
                "[kv] the free list's links disagree");
    if (id == separator()) continue;
    QUIRE_CHECK(++num_listed < num_blocks(), "[kv] the free list has a loop");
    QUIRE_CHECK(ref_counts_[static_cast<size_t>(id)] == 0, "[kv] a held block is on the free list");
  }
  const auto num_unused = std::count(ref_counts_.begin() + 1, ref_counts_.end(), 0);
  QUIRE_CHECK(num_listed == num_free_ && num_listed == num_unused, "[kv] a block was lost");
  QUIRE_CHECK(ref_counts_[kEnd] == 0, "[kv] the padding page was handed out");
}

namespace {

// Writes canonical CBOR (RFC 8949): every number in the fewest bytes. Supports only the types that
// occur in block hashes.
class Cbor {
 public:
  void clear() { size_ = 0; }
  std::span<const std::byte> bytes() const { return std::span(bytes_).first(size_); }

  void integer(int32_t value) {
    if (value >= 0) return head(0, static_cast<uint64_t>(value));
    head(1, static_cast<uint64_t>(-1 - int64_t{value}));
  }
  void byte_string(std::span<const std::byte> value) { string(2, value); }
  void text(std::string_view value) { string(3, std::as_bytes(std::span(value))); }
  void begin_array(size_t size) { head(4, size); }
  void null() { head(7, 22); }

 private:
  static constexpr size_t kMaxHead = 9;

  void string(unsigned major, std::span<const std::byte> value) {
    head(major, value.size());
    std::ranges::copy(value, room(value.size()));
    size_ += value.size();
  }

  // Writes the major type, and `value` in 0, 1, 2, 4 or 8 further bytes, big-endian.
  void head(unsigned major, uint64_t value) {
    constexpr uint64_t kInline = 24;
    std::byte* out = room(kMaxHead);
    if (value < kInline) {
      *out = static_cast<std::byte>(major << 5 | value);
      ++size_;
      return;
    }
    const unsigned log_size = value <= UINT8_MAX    ? 0
                              : value <= UINT16_MAX ? 1
                              : value <= UINT32_MAX ? 2
                                                    : 3;
    const unsigned num_bytes = 1U << log_size;
    *out = static_cast<std::byte>(major << 5 | (kInline + log_size));
    const uint64_t first_bytes = __builtin_bswap64(value << (64 - 8 * num_bytes));
    std::memcpy(out + 1, &first_bytes, sizeof first_bytes);
    size_ += 1 + num_bytes;
  }

  std::byte* room(size_t num_bytes) {
    if (size_ + num_bytes > bytes_.size()) bytes_.resize(2 * (size_ + num_bytes));
    return bytes_.data() + size_;
  }

  std::vector<std::byte> bytes_;
  size_t size_ = 0;
};

struct BlockHasher {
  Cbor cbor;
  Hasher hasher;

  BlockHash digest() {
    const std::span<const std::byte> bytes = cbor.bytes();
    hasher.add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    BlockHash hash;
    hasher.finish({reinterpret_cast<uint8_t*>(hash.data()), hash.size()});
    return hash;
  }
};

// Returns this thread's hasher. It keeps its memory, so that hashing does not allocate.
BlockHasher& block_hasher() {
  thread_local BlockHasher object;
  object.cbor.clear();
  return object;
}

void write_ids(std::span<const int32_t> ids, Cbor& cbor) {
  for (const int32_t id : ids) cbor.integer(id);
}

}  // namespace

BlockHash none_hash(std::string_view seed) {
  BlockHasher& hash = block_hasher();
  hash.cbor.text(seed);
  return hash.digest();
}

BlockHash block_hash(const BlockHash& parent, std::span<const int32_t> token_ids,
                     std::span<const int32_t> ahead, std::string_view salt) {
  BlockHasher& hash = block_hasher();
  Cbor& cbor = hash.cbor;
  cbor.begin_array(3);
  cbor.byte_string(parent);
  cbor.begin_array(token_ids.size());
  write_ids(token_ids, cbor);
  if (!ahead.empty()) cbor.begin_array(1 + ahead.size());
  if (salt.empty()) {
    cbor.null();
  } else {
    cbor.begin_array(1);
    cbor.begin_array(2);
    cbor.text("cache_salt");
    cbor.text(salt);
  }
  write_ids(ahead, cbor);
  return hash.digest();
}

void extend_block_hashes(std::string_view salt, const HashedBlocks& blocks,
                         std::span<const int32_t> token_ids, int num_blocks,
                         std::vector<BlockHash>& hashes) {
  const auto size = static_cast<size_t>(blocks.size);
  const auto num_ahead = static_cast<size_t>(blocks.num_tokens_ahead);
  for (size_t idx = hashes.size(); idx < static_cast<size_t>(num_blocks); ++idx) {
    const size_t begin = idx * size;
    QUIRE_CHECK(begin + size + num_ahead <= token_ids.size(),
                "[kv] a block to be hashed is not full, or the tokens ahead of it are not known");
    const BlockHash parent = idx == 0 ? blocks.root : hashes[idx - 1];
    hashes.push_back(block_hash(parent, token_ids.subspan(begin, size),
                                token_ids.subspan(begin + size, num_ahead),
                                idx == 0 ? salt : std::string_view()));
  }
}

namespace {

constexpr size_t kMinRecord = 4096;  // because a table of recurrent states may have few entries

uint64_t eight_bytes(const BlockHash& hash, size_t offset) {
  uint64_t value = 0;
  std::memcpy(&value, hash.data() + offset, sizeof value);
  return value;
}

}  // namespace

size_t PrefixCache::FirstBytes::operator()(const BlockHash& hash) const {
  return eight_bytes(hash, 0);
}

PrefixCache::PrefixCache(int num_blocks)
    : hashes_(static_cast<size_t>(num_blocks)),
      evicted_(std::bit_ceil(std::max(2 * static_cast<size_t>(num_blocks), kMinRecord))) {}

bool PrefixCache::contains(int32_t block_id) const {
  return hashes_.at(static_cast<size_t>(block_id)) != nullptr;
}

std::optional<int32_t> PrefixCache::find(const BlockHash& hash) const {
  const auto found = blocks_.find(hash);
  if (found == blocks_.end()) return std::nullopt;
  return found->second;
}

bool PrefixCache::insert(const BlockHash& hash, int32_t block_id) {
  QUIRE_CHECK(!contains(block_id), "[kv] a cached block was filled again");
  const auto [entry, inserted] = blocks_.try_emplace(hash, block_id);
  if (inserted) hashes_[static_cast<size_t>(block_id)] = &entry->first;
  return inserted;
}

std::optional<BlockHash> PrefixCache::evict(int32_t block_id) {
  const std::optional<BlockHash> hash = remove(block_id);
  if (hash) evicted_[eight_bytes(*hash, 8) % evicted_.size()] = eight_bytes(*hash, 16);
  return hash;
}

std::optional<BlockHash> PrefixCache::remove(int32_t block_id) {
  if (!contains(block_id)) return std::nullopt;
  const BlockHash hash = *std::exchange(hashes_[static_cast<size_t>(block_id)], nullptr);
  blocks_.erase(blocks_.find(hash));
  return hash;
}

bool PrefixCache::was_evicted(const BlockHash& hash) const {
  return evicted_[eight_bytes(hash, 8) % evicted_.size()] == eight_bytes(hash, 16);
}

std::vector<BlockHash> PrefixCache::hashes() const {
  std::vector<BlockHash> all;
  for (const auto& [hash, block_id] : blocks_) all.push_back(hash);
  return all;
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
