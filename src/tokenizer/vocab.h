// The tokens of a vocabulary, by id and by spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "tokenizer/string_map.h"

namespace quire {

class Vocab {
 public:
  Vocab() = default;
  Vocab(const Vocab&) = delete;  // the index points into the text
  Vocab& operator=(const Vocab&) = delete;

  static constexpr int32_t kMaxId = (1 << 22) - 1;
  static constexpr size_t kMaxTextBytes = size_t{1} << 30;

  // Ids must be unique. Add all tokens, then call index() once; find() works only after that.
  Status add(std::string_view text, int64_t id);
  void index();

  // If several ids have the same text, returns the id that was added last.
  std::optional<int32_t> find(std::string_view text) const {
    const int32_t id = by_text_.find(text);
    if (id == StringMap::kAbsent) return std::nullopt;
    return id;
  }
  // Returns an empty text if the id has no token.
  std::string_view text(int32_t id) const {
    if (id < 0 || id >= num_ids()) return {};
    const Span span = by_id_[static_cast<size_t>(id)];
    return std::string_view(bytes_).substr(span.offset, span.size);
  }
  bool contains(int32_t id) const {
    return id >= 0 && id < num_ids() && by_id_[static_cast<size_t>(id)].offset != kNowhere;
  }
  // The highest id plus 1.
  int32_t num_ids() const { return static_cast<int32_t>(by_id_.size()); }

 private:
  static constexpr uint32_t kNowhere = 0;  // bytes_ starts with a byte that belongs to no token
  struct Span {
    uint32_t offset = kNowhere;
    uint32_t size = 0;
  };

  std::string bytes_ = std::string(1, '\0');
  std::vector<Span> by_id_;
  std::vector<int32_t> in_order_;
  StringMap by_text_;
};

}  // namespace quire
