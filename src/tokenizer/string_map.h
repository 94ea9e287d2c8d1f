// Hash maps with open addressing, linear probing and no deletion, and a trie that uses them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace quire {

inline uint64_t mix_hash(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15U) * (b ^ 0xD1B54A32D192ED03U);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Hashes eight bytes per step. The last step may overlap bytes that are already hashed.
inline uint64_t hash_bytes(std::string_view text) {
  const char* p = text.data();
  size_t left = text.size();
  uint64_t hash = left;
  const auto load = [](const char* at, size_t num_bytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, num_bytes);
    return word;
  };
  if (left < 8) {
    if (left >= 4) return mix_hash(hash, load(p, 4) | (load(p + left - 4, 4) << 32));
    if (left == 0) return mix_hash(0, 0);
    const uint64_t word = load(p, 1) | (load(p + left / 2, 1) << 8) | (load(p + left - 1, 1) << 16);
    return mix_hash(hash, word);
  }
  for (; left > 8; p += 8, left -= 8) hash = mix_hash(hash, load(p, 8));
  return mix_hash(hash, load(p + left - 8, 8));
}

// Maps strings, which must outlive the map, to ids.
class StringMap {
 public:
  static constexpr int32_t kAbsent = -1;

  explicit StringMap(size_t capacity = 0) : slots_(std::bit_ceil(capacity * 3 / 2 + 8)) {}

  void set(std::string_view key, int32_t id) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    Slot& slot = slots_[position(key)];
    if (slot.data == nullptr) ++size_;
    slot = {key.data(), static_cast<uint32_t>(key.size()), id};
  }
  int32_t find(std::string_view key) const {
    const Slot& slot = slots_[position(key)];
    return slot.data == nullptr ? kAbsent : slot.id;
  }

 private:
  struct Slot {
    const char* data = nullptr;
    uint32_t size = 0;
    int32_t id = kAbsent;
  };

  size_t position(std::string_view key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = hash_bytes(key) & mask;
    while (slots_[i].data != nullptr && std::string_view(slots_[i].data, slots_[i].size) != key) {
      i = (i + 1) & mask;
    }
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.data != nullptr) slots_[position({slot.data, slot.size})] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

// Maps pairs of 32-bit numbers to a small plain value.
template <typename Value>
class PairMap {
 public:
  explicit PairMap(size_t capacity = 0)
      : slots_(std::bit_ceil(capacity * 3 / 2 + 8)), shift_(64 - std::countr_zero(slots_.size())) {}

  void set(uint32_t left, uint32_t right, const Value& value) {
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    Slot& slot = slots_[position(key_of(left, right))];
    if (slot.key == kEmpty) ++size_;
    slot = {key_of(left, right), value};
  }
  // Returns nullptr if the pair is absent.
  const Value* find(uint32_t left, uint32_t right) const {
    const Slot& slot = slots_[position(key_of(left, right))];
    return slot.key == kEmpty ? nullptr : &slot.value;
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;  // greater than any pair of ids or code points
  struct Slot {
    uint64_t key = kEmpty;
    Value value{};
  };

  static uint64_t key_of(uint32_t left, uint32_t right) {
    return (static_cast<uint64_t>(left) << 32) | right;
  }
  size_t position(uint64_t key) const {
    size_t i = mix_hash(key, key) >> shift_;
    while (slots_[i].key != key && slots_[i].key != kEmpty) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old) {
      if (slot.key != kEmpty) slots_[position(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  int shift_;
  size_t size_ = 0;
};

// A map from byte strings to ids, implemented as a trie with one byte per step.
class ByteTrie {
 public:
  using Node = uint32_t;
  static constexpr Node kRoot = 0;
  static constexpr Node kNone = UINT32_MAX;
  static constexpr int32_t kNoId = -1;

  // A later id for the same text replaces the earlier one.
  void insert(std::string_view text, int32_t id);

  Node next(Node node, char byte) const {
    const Node* child = children_.find(node, static_cast<unsigned char>(byte));
    return child == nullptr ? kNone : *child;
  }
  // The id of the string that ends at this node, or kNoId.
  int32_t id(Node node) const { return ids_[node]; }

  struct Match {
    int32_t id = kNoId;
    size_t num_bytes = 0;
    size_t num_walked = 0;  // number of bytes of the text that were read: the cost of the search
  };
  // Finds the longest inserted string that is a prefix of `text`.
  Match longest_prefix(std::string_view text) const;
  bool is_empty() const { return ids_.size() == 1 && ids_[kRoot] == kNoId; }

 private:
  PairMap<Node> children_;
  std::vector<int32_t> ids_ = {kNoId};
};

inline void ByteTrie::insert(std::string_view text, int32_t id) {
  Node node = kRoot;
  for (const char byte : text) {
    Node child = next(node, byte);
    if (child == kNone) {
      child = static_cast<Node>(ids_.size());
      ids_.push_back(kNoId);
      children_.set(node, static_cast<unsigned char>(byte), child);
    }
    node = child;
  }
  ids_[node] = id;
}

inline ByteTrie::Match ByteTrie::longest_prefix(std::string_view text) const {
  Match longest;
  Node node = kRoot;
  while (longest.num_walked < text.size()) {
    node = next(node, text[longest.num_walked++]);
    if (node == kNone) break;
    if (ids_[node] == kNoId) continue;
    longest.id = ids_[node];
    longest.num_bytes = longest.num_walked;
  }
  return longest;
}

}  // namespace quire
