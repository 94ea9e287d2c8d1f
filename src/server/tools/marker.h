// Searches for a fixed text (the marker) in a text that arrives in pieces.
#pragma once

#include <string_view>
#include <vector>

namespace quire::server {

// Searches by Knuth, Morris and Pratt: the time is linear in the text, and at most the marker's
// length is held back.
class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text), fallback_(text.size(), 0) {
    for (size_t i = 1; i < text_.size(); ++i) {
      size_t length = fallback_[i - 1];
      while (length > 0 && text_[i] != text_[length]) length = fallback_[length - 1];
      fallback_[i] = length + (text_[i] == text_[length] ? 1 : 0);
    }
  }

  // Returns whether `c` completes the marker.
  bool push(char c) {
    while (num_matched_ > 0 && text_[num_matched_] != c) {
      num_matched_ = fallback_[num_matched_ - 1];
    }
    if (text_[num_matched_] != c) return false;
    if (++num_matched_ < text_.size()) return false;
    num_matched_ = 0;
    return true;
  }

  // The state of the search: bytes of the marker that the newest bytes may begin.
  size_t num_matched() const { return num_matched_; }
  void resume(size_t num_matched) { num_matched_ = num_matched; }

 private:
  std::string_view text_;  // must outlive the marker
  std::vector<size_t> fallback_;
  size_t num_matched_ = 0;
};

}  // namespace quire::server
