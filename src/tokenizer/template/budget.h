// What a template may spend, and the one exception of this room: thrown anywhere below
// ChatTemplate's two doors and caught there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace quire::jinja {

struct Error {
  std::string message;
  int line = 0;  // 0: where the interpreter stands
};

[[noreturn]] void fail(std::string message);
[[noreturn]] void fail_at(int line, std::string message);

class Budget {
 public:
  Budget(int64_t max_steps, size_t max_live_bytes)
      : max_steps_(max_steps), max_live_bytes_(max_live_bytes) {}

  void step(int64_t num_steps = 1) {
    steps_ += num_steps;
    if (steps_ > max_steps_) fail_steps();
  }
  // Work over text: 64 bytes read or written count as one step.
  void read(size_t num_bytes) { step(static_cast<int64_t>(num_bytes / 64)); }
  // Asks before memory is made; live() is what MemoryCharge holds at the moment.
  void want(size_t num_bytes) {
    if (num_bytes > max_live_bytes_ || live_bytes_ > max_live_bytes_ - num_bytes) fail_memory();
  }
  void take(size_t num_bytes) {
    want(num_bytes);
    live_bytes_ += num_bytes;
  }
  void give_back(size_t num_bytes) { live_bytes_ -= num_bytes; }

 private:
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_memory() const;

  int64_t max_steps_;
  int64_t steps_ = 0;
  size_t max_live_bytes_;
  size_t live_bytes_ = 0;
};

// A string that asks the budget before it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget) {}
  void append(std::string_view text) {
    budget_.want(text_.size() + text.size());
    budget_.read(text.size());
    text_.append(text);
  }
  void append(size_t count, char c) {
    budget_.want(text_.size() + count);
    text_.append(count, c);
  }
  size_t size() const { return text_.size(); }
  Budget& budget() { return budget_; }
  std::string take() { return std::move(text_); }

 private:
  Budget& budget_;
  std::string text_;
};

}  // namespace quire::jinja
