#include "kv/prefix_cache.h"

#include <cstring>
#include <utility>

#include "base/check.h"

namespace quire {

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
  QUIRE_CHECK(!contains(block_id), "[kv] a cached block is never filled again");
  const auto [entry, inserted] = blocks_.try_emplace(hash, block_id);
  if (inserted) hashes_[static_cast<size_t>(block_id)] = &entry->first;
}

void PrefixCache::evict(int32_t block_id) {
  if (!contains(block_id)) return;
  const BlockHash* key = std::exchange(hashes_[static_cast<size_t>(block_id)], nullptr);
  blocks_.erase(blocks_.find(*key));
}

void PrefixCache::check_invariants() const {
  size_t num_known = 0;
  for (size_t id = 0; id < hashes_.size(); ++id) {
    if (hashes_[id] == nullptr) continue;
    ++num_known;
    const auto found = blocks_.find(*hashes_[id]);
    QUIRE_CHECK(found != blocks_.end() && found->second == static_cast<int32_t>(id),
                "[kv] a block and its hash disagree");
  }
  QUIRE_CHECK(num_known == blocks_.size(), "[kv] a hash names a block that does not know it");
  QUIRE_CHECK(hashes_[0] == nullptr, "[kv] the padding page is cached");
}

}  // namespace quire
