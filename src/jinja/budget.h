// The limits of a render, the budget that enforces them, and Error, the only exception that this
// module throws. ChatTemplate::parse() and render() catch it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/marked_text.h"

namespace quire {

// Limits on one render. Exceeding one of them ends the render with an error.
struct TemplateLimits {
  // The limit on work. A step is a node evaluated, an item visited or 64 bytes of text read.
  int64_t max_steps = 2'000'000;
  size_t max_output_bytes = size_t{8} << 20;
  size_t max_source_bytes = size_t{1} << 20;
  int max_depth = 100;                       // nesting of the source, and of macro calls
  size_t max_live_bytes = size_t{64} << 20;  // memory allocated by the template: strings, lists
  // The time for strftime_now, in seconds since the epoch, shown in UTC. nullopt: the machine's
  // clock in its time zone.
  std::optional<int64_t> now_unix_s = std::nullopt;
};

}  // namespace quire

namespace quire::jinja {

struct Error {
  std::string message;
  int line = 0;  // 0: the interpreter's current line
};

[[noreturn]] void fail(std::string message);
[[noreturn]] void fail_at(int line, std::string message);

// Counts work and memory. The unit of work is 1/64 step, so that many small operations cost as much
// as one large operation.
class Budget {
 public:
  Budget(int64_t max_steps, size_t max_live_bytes)
      : max_units_(static_cast<uint64_t>(std::clamp<int64_t>(max_steps, 0, INT64_MAX / 64)) * 64),
        max_live_bytes_(max_live_bytes) {}

  // Charges a step: for a node evaluated, a value compared or an item handled.
  void step(size_t num_steps = 1) { spend(num_steps * 64); }
  // Charges text read or written: 64 bytes count as one step.
  void read(size_t num_bytes) { spend(num_bytes); }
  // Charges items that are only copied or skipped: eight count as one step.
  void visit(size_t num_items) { spend(num_items * 8); }
  int64_t num_steps() const { return static_cast<int64_t>(units_ / 64); }

  // Fails if num_bytes more would exceed the limit. Call it before allocating.
  void require_free(size_t num_bytes) {
    if (num_bytes > max_live_bytes_ || live_bytes_ > max_live_bytes_ - num_bytes) fail_memory();
  }
  void take(size_t num_bytes) {
    require_free(num_bytes);
    live_bytes_ += num_bytes;
  }
  void give_back(size_t num_bytes) { live_bytes_ -= num_bytes; }

 private:
  void spend(uint64_t num_units) {
    units_ += std::min(num_units, max_units_ + 1 - units_);
    if (units_ > max_units_) fail_steps();
  }
  [[noreturn]] void fail_steps() const;
  [[noreturn]] void fail_memory() const;

  uint64_t max_units_;
  uint64_t units_ = 0;  // at most max_units_ + 1
  size_t max_live_bytes_;
  size_t live_bytes_ = 0;
};

// Charges a budget for memory that the template allocated, and releases it on destruction.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(Budget& budget, size_t num_bytes) : budget_(&budget) { add(num_bytes); }
  MemoryCharge(MemoryCharge&& other) noexcept { *this = std::move(other); }
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(num_bytes_, other.num_bytes_);
    return *this;
  }
  ~MemoryCharge() {
    if (budget_ != nullptr) budget_->give_back(num_bytes_);
  }
  // Charges more to the same budget; does nothing if there is no budget.
  void add(size_t num_bytes) {
    if (budget_ == nullptr) return;
    budget_->take(num_bytes);
    num_bytes_ += num_bytes;
  }

 private:
  Budget* budget_ = nullptr;
  size_t num_bytes_ = 0;
};

// A text that charges the budget before it grows. An empty piece is charged, too. Every piece is
// appended together with its source, from which it takes its marks.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget), charge_(budget, 0) {}
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  // Appends text that the template determines, or that is written for a number, None or the like.
  void append_literal(std::string_view text) {
    charge(text.size(), 1);
    built_.text.append(text);
  }
  void append(const MarkedText& text) { append(text, text.text); }
  // Appends a part of `source`.
  void append(const MarkedText& source, std::string_view part) {
    charge(part.size(), 1);
    built_.append(source, part);
    charge_marks();
  }
  // Appends the text that replaces a part of `source`, with the marks of that part.
  void append_replacement(const MarkedText& source, std::string_view part, std::string_view text) {
    if (!source.is_untrusted(part)) return append_literal(text);
    charge(text.size(), 1);
    built_.append_untrusted(text, source.untrusted.owner_after(source.offset_of(part)));
    charge_marks();
  }
  void append_times(size_t count, const MarkedText& text) {
    size_t num_bytes = 0;
    if (__builtin_mul_overflow(count, text.text.size(), &num_bytes)) num_bytes = SIZE_MAX;
    charge(num_bytes, count);
    for (size_t i = 0; i < count; ++i) {
      built_.append(text);
      charge_marks();
    }
  }
  size_t size() const { return built_.text.size(); }
  Budget& budget() { return budget_; }
  // Returns the text and releases its memory from the budget. Must be the last call.
  MarkedText take() {
    charge_ = MemoryCharge();
    return std::move(built_);
  }

 private:
  void charge_marks() {
    const size_t num_bytes = built_.untrusted.num_heap_bytes();
    if (num_bytes == num_mark_bytes_) return;
    charge_.add(num_bytes - num_mark_bytes_);
    num_mark_bytes_ = num_bytes;
  }
  void charge(size_t num_bytes, size_t num_pieces) {
    charge_.add(num_bytes);
    budget_.read(num_bytes);
    budget_.read(num_pieces);
  }

  Budget& budget_;
  MemoryCharge charge_;
  size_t num_mark_bytes_ = 0;
  MarkedText built_;
};

}  // namespace quire::jinja
