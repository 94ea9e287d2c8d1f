#include "tokenizer/byte_trie.h"

namespace quire {

void ByteTrie::insert(std::string_view text, int32_t id) {
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

ByteTrie::Match ByteTrie::longest_prefix(std::string_view text) const {
  Match longest;
  Node node = kRoot;
  for (size_t i = 0; i < text.size(); ++i) {
    node = next(node, text[i]);
    if (node == kNone) break;
    if (ids_[node] != kNoId) longest = {ids_[node], i + 1};
  }
  return longest;
}

}  // namespace quire
