// A map from byte strings to ids, as a trie that is walked byte by byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/string_map.h"

namespace quire {

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
    size_t num_walked = 0;  // bytes of the text that were read, which is the cost of the search
  };
  // Finds the longest inserted string that is a prefix of `text`.
  Match longest_prefix(std::string_view text) const;
  bool is_empty() const { return ids_.size() == 1 && ids_[kRoot] == kNoId; }

 private:
  PairMap<Node> children_;
  std::vector<int32_t> ids_ = {kNoId};
};

}  // namespace quire
