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
