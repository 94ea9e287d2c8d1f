// Chooses the replica that serves a request. This code has no threads, and needs no engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace quire {

inline constexpr int kMaxReplicas = 64;

// A replica, as a candidate for one request.
struct ReplicaCandidate {
  int64_t num_outstanding_tokens = 0;  // EngineStats::num_outstanding_tokens
  int64_t num_known_tokens = 0;        // prefix of the prompt that was sent to it before
};

// Returns the index of a replica; `replicas` is not empty. A replica's load is its number of
// outstanding tokens. Chooses the replica with the longest known prefix (of several, the least
// loaded one) if its load is at most 9/8 of the smallest load plus the tokens that the prefix
// saves. Otherwise chooses the least loaded replica. Of equal replicas, chooses the first.
size_t choose_replica(std::span<const ReplicaCandidate> replicas);

// A map that drops old keys. It keeps the `capacity` keys that were used last, and at most
// `capacity` older ones.
template <typename Value>
class AgingMap {
 public:
  explicit AgingMap(size_t capacity) : capacity_(capacity) {}

  // Null: the key is absent.
  Value* find(uint64_t key) {
    if (const auto found = young_.find(key); found != young_.end()) return &found->second;
    const auto found = old_.find(key);
    if (found == old_.end()) return nullptr;
    const Value value = found->second;
    old_.erase(found);
    return &insert(key, value);
  }
  // Adds an empty value if the key is absent.
  Value& operator[](uint64_t key) {
    Value* known = find(key);
    return known == nullptr ? insert(key, Value()) : *known;
  }
  size_t size() const { return young_.size() + old_.size(); }

 private:
  Value& insert(uint64_t key, const Value& value) {
    if (young_.size() >= capacity_) {
      old_ = std::move(young_);
      young_.clear();
    }
    return young_[key] = value;
  }

  size_t capacity_;
  std::unordered_map<uint64_t, Value> young_;
  std::unordered_map<uint64_t, Value> old_;
};

// Records which prefixes were sent to which replica. The record is approximate: it ignores
// evictions from the replicas' caches, and equal hashes count as equal tokens.
class PrefixIndex {
 public:
  static constexpr int kBlockSize = 64;  // tokens per hash

  // Returns one hash per full block of the prompt. It also covers all earlier blocks and the salt.
  static std::vector<uint64_t> hash_blocks(std::span<const int32_t> prompt, std::string_view salt);

  // Keeps at least the last `max_blocks` hashes.
  explicit PrefixIndex(size_t max_blocks) : replicas_(max_blocks) {}

  // Sets num_known_tokens of every candidate.
  void look_up(std::span<const uint64_t> hashes, std::span<ReplicaCandidate> candidates);
  void add(std::span<const uint64_t> hashes, size_t replica);
  size_t size() const { return replicas_.size(); }

 private:
  AgingMap<uint64_t> replicas_;  // by hash; bit r is set if the block was sent to replica r
};

}  // namespace quire
