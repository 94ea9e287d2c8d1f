// Bytes that were read and not yet parsed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace quire::http {

// A buffer that grows as it fills, up to `max_bytes`.
class ReadBuffer {
 public:
  explicit ReadBuffer(size_t max_bytes) : max_bytes_(max_bytes) {}

  std::string_view bytes() const { return {memory_.data() + begin_, end_ - begin_}; }
  bool is_full() const { return end_ - begin_ == max_bytes_; }

  // Returns memory for the next read; empty only if is_full().
  std::pair<char*, size_t> make_room() {
    if (begin_ > 0) {
      std::memmove(memory_.data(), memory_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    constexpr size_t kFirstBytes = 4096;
    if (end_ == memory_.size()) {
      memory_.resize(std::min(max_bytes_, std::max(kFirstBytes, memory_.size() * 2)));
    }
    return {memory_.data() + end_, memory_.size() - end_};
  }
  void add(size_t num_bytes) { end_ += num_bytes; }
  // Does not move memory, because a read may be in progress.
  void consume(size_t num_bytes) { begin_ += num_bytes; }
  void clear() { begin_ = end_ = 0; }

 private:
  const size_t max_bytes_;
  std::vector<char> memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace quire::http
