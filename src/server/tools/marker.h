// Searches for a fixed text in text that arrives in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// Knuth-Morris-Pratt search: the time is linear in the text, and at most the marker's length is
// held back.
class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text), fallback_(text.size(), 0) {
    for (size_t i = 1; i < text_.size(); ++i) {
      size_t length = fallback_[i - 1];
      while (length > 0 && text_[i] != text_[length]) length = fallback_[length - 1];
      fallback_[i] = length + (text_[i] == text_[length] ? 1 : 0);
    }
  }

  std::string_view text() const { return text_; }

  // Returns whether `c` completes the marker. Otherwise passes the bytes that can no longer be part
  // of it to `release`, in order, as views of earlier bytes and of `c`.
  template <typename Release>
  bool push(char c, Release release) {
    while (num_matched_ > 0 && text_[num_matched_] != c) {
      const size_t length = fallback_[num_matched_ - 1];
      release(text_.substr(0, num_matched_ - length));
      num_matched_ = length;
    }
    if (text_[num_matched_] != c) {
      release(std::string_view(&c, 1));
      return false;
    }
    if (++num_matched_ < text_.size()) return false;
    num_matched_ = 0;
    return true;
  }

  // Returns the held text and restarts the search.
  std::string_view take_held() {
    const std::string_view held = text_.substr(0, num_matched_);
    num_matched_ = 0;
    return held;
  }

 private:
  std::string_view text_;  // must refer to a literal
  std::vector<size_t> fallback_;
  size_t num_matched_ = 0;
};

}  // namespace quire::server
