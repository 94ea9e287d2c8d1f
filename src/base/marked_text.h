// A text that records which of its bytes came from a request. The template engine marks them in a
// prompt that it renders, and the tokenizer takes no control token from them.
//
// A mark may also name its owner, the message that the bytes come from. The owners show which
// messages the template left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quire {

// Sorted byte ranges of a text. Two ranges of one owner have at least one byte between them. The
// object itself holds the first range, without an allocation, because few texts have more.
class ByteSpans {
 public:
  struct Span {
    size_t begin = 0;
    size_t end = 0;
    uint32_t owner = 0;  // 0: none
    bool operator==(const Span&) const = default;
  };

  static ByteSpans whole(size_t num_bytes, uint32_t owner = 0) {
    ByteSpans spans;
    spans.add(0, num_bytes, owner);
    return spans;
  }

  bool empty() const { return first_.begin == first_.end; }
  size_t count() const { return empty() ? 0 : 1 + more_.size(); }
  const Span& operator[](size_t idx) const { return idx == 0 ? first_ : more_[idx - 1]; }
  bool operator==(const ByteSpans&) const = default;
  // Memory on the heap.
  size_t num_heap_bytes() const { return more_.capacity() * sizeof(Span); }

  // Adds a range that begins at or after the end of the last one. An empty range adds nothing.
  void add(size_t begin, size_t end, uint32_t owner = 0) {
    if (begin == end) return;
    Span& last = more_.empty() ? first_ : more_.back();
    if (empty()) {
      first_ = {begin, end, owner};
    } else if (last.end == begin && last.owner == owner) {
      last.end = end;
    } else {
      more_.push_back({begin, end, owner});
    }
  }

  // Whether any byte of [begin, end) is in a range. Takes logarithmic time.
  bool intersects(size_t begin, size_t end) const {
    if (begin >= end || empty()) return false;
    const size_t idx = first_ending_after(begin);
    return idx < count() && (*this)[idx].begin < end;
  }

  // The owner of the first range that ends after `offset`; there must be one.
  uint32_t owner_after(size_t offset) const { return (*this)[first_ending_after(offset)].owner; }

  // Adds the ranges of another text within [begin, end), shifted so that `begin` becomes `at`.
  void add_part(const ByteSpans& of, size_t begin, size_t end, size_t at) {
    if (of.empty()) return;
    for (size_t i = of.first_ending_after(begin); i < of.count() && of[i].begin < end; ++i) {
      add(std::max(of[i].begin, begin) - begin + at, std::min(of[i].end, end) - begin + at,
          of[i].owner);
    }
  }

 private:
  size_t first_ending_after(size_t offset) const {
    if (empty() || first_.end > offset) return 0;
    const auto at = std::partition_point(more_.begin(), more_.end(),
                                         [&](const Span& span) { return span.end <= offset; });
    return 1 + static_cast<size_t>(at - more_.begin());
  }

  Span first_;
  std::vector<Span> more_;
};

struct MarkedText {
  std::string text;
  ByteSpans untrusted;  // the bytes that came from a request

  // `part` must lie within `text`.
  size_t offset_of(std::string_view part) const {
    return static_cast<size_t>(part.data() - text.data());
  }
  // Whether `part` has an untrusted byte.
  bool is_untrusted(std::string_view part) const {
    if (part.empty()) return false;
    const size_t begin = offset_of(part);
    return untrusted.intersects(begin, begin + part.size());
  }
  void append(const MarkedText& other) { append(other, other.text); }
  // Appends a part of another text.
  void append(const MarkedText& other, std::string_view part) {
    if (part.empty()) return;
    const size_t begin = other.offset_of(part);
    untrusted.add_part(other.untrusted, begin, begin + part.size(), text.size());
    text.append(part);
  }
  void append_untrusted(std::string_view more, uint32_t owner = 0) {
    untrusted.add(text.size(), text.size() + more.size(), owner);
    text.append(more);
  }
};

inline MarkedText copy_untrusted(std::string_view text) {
  MarkedText copy;
  copy.append_untrusted(text);
  return copy;
}

// A copy of a part of `of`, which must lie within its text.
inline MarkedText copy_part(const MarkedText& of, std::string_view part) {
  MarkedText copy;
  copy.append(of, part);
  return copy;
}

// A text that a filter such as `upper` makes from all of `from`. If any byte of `from` is
// untrusted, all bytes of the result are, because the origin of each is unknown. Each owner gets
// one byte, so that no owner is lost, and the last owner also gets the rest.
inline MarkedText derived(const MarkedText& from, std::string text) {
  ByteSpans untrusted;
  size_t begin = 0;
  for (size_t i = 0; i < from.untrusted.count() && begin < text.size(); ++i) {
    const bool is_last = i + 1 == from.untrusted.count();
    const size_t end = is_last ? text.size() : begin + 1;
    untrusted.add(begin, end, from.untrusted[i].owner);
    begin = end;
  }
  return {std::move(text), std::move(untrusted)};
}

}  // namespace quire
