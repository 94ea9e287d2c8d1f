// The limits of a template, the budget that enforces the limits of steps and memory, and Error, the
// only exception that this module throws itself. ChatTemplate::parse() and render() catch it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/marked_text.h"

namespace quire {

// Limits on parsing a template and on one render of it. Exceeding one of them is an error.
struct TemplateLimits {
  // The limit on work, in steps: one per node evaluated, value compared or item handled, per 8
  // items copied or skipped, and per 64 bytes of text read or written.
  int64_t max_steps = 2'000'000;
  size_t max_output_bytes = size_t{8} << 20;
  size_t max_source_bytes = size_t{1} << 20;
  int max_depth = 100;                       // nesting of the source, and of macro calls
  size_t max_live_bytes = size_t{64} << 20;  // memory allocated by the template: strings, lists
  // Not a limit: the time that strftime_now formats, in seconds since the epoch, in UTC. nullopt:
  // the current time in the machine's time zone. Tests set it.
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

  // Charges steps: one per node evaluated, value compared or item handled.
  void step(size_t num_steps = 1) { spend(num_steps * 64); }
  // Charges text read or written: one step per 64 bytes.
  void read(size_t num_bytes) { spend(num_bytes); }
  // Charges items that are only copied or skipped: one step per eight.
  void visit(size_t num_items) { spend(num_items * 8); }
  int64_t num_steps() const { return static_cast<int64_t>(units_ / 64); }

  // Fails if num_bytes more would exceed the limit, without charging them: for memory that is not
  // charged yet, or is freed soon. Call it before allocating.
  void require_free(size_t num_bytes) {
    if (num_bytes > max_live_bytes_ || live_bytes_ > max_live_bytes_ - num_bytes) fail_memory();
  }
  // Charges num_bytes, which give_back() releases. Fails as require_free() does.
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

// Builds a text, and charges the budget for its bytes before it grows, and for its marks right
// after. Each piece also costs as much as one byte of text, so that empty pieces are not free.
// Pieces of a MarkedText keep their marks; append_literal() adds bytes without marks.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget), charge_(budget, 0) {}
  TextBuilder(const TextBuilder&) = delete;
  TextBuilder& operator=(const TextBuilder&) = delete;

  // Appends trusted text: of the template, or the spelling of a number, None or the like.
  void append_literal(std::string_view text) {
    charge_pieces(text.size(), 1);
    built_.text.append(text);
  }
  void append(const MarkedText& text) { append(text, text.text); }
  // Appends a part of `source`.
  void append(const MarkedText& source, std::string_view part) {
    charge_pieces(part.size(), 1);
    built_.append(source, part);
    charge_marks();
  }
  // Appends the text that replaces a part of `source`, with the marks of that part.
  void append_replacement(const MarkedText& source, std::string_view part, std::string_view text) {
    if (!source.is_untrusted(part)) return append_literal(text);
    charge_pieces(text.size(), 1);
    built_.append_untrusted(text, source.untrusted.owner_after(source.offset_of(part)));
    charge_marks();
  }
  void append_times(size_t count, const MarkedText& text) {
    size_t num_bytes = 0;
    if (__builtin_mul_overflow(count, text.text.size(), &num_bytes)) num_bytes = SIZE_MAX;
    charge_pieces(num_bytes, count);
    for (size_t i = 0; i < count; ++i) {
      built_.append(text);
      charge_marks();
    }
  }
  size_t size() const { return built_.text.size(); }
  Budget& budget() { return budget_; }
  // Returns the text, and ends its charge: a value that keeps the text charges it anew. Must be the
  // last call.
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
  void charge_pieces(size_t num_bytes, size_t num_pieces) {
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
