// Budgets shared by all grammars and all constrained answers of an engine.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace quire::grammar {

// The memory of compiled grammars, cached or in use, and of parses. Thread-safe.
class SharedMemory {
 public:
  explicit SharedMemory(size_t max_bytes) : max_bytes_(max_bytes) {}

  bool take(size_t num_bytes) {
    size_t held = held_.load();
    do {
      if (held > max_bytes_ || num_bytes > max_bytes_ - held) return false;
    } while (!held_.compare_exchange_weak(held, held + num_bytes));
    return true;
  }
  void give_back(size_t num_bytes) { held_ -= num_bytes; }
  size_t held_bytes() const { return held_.load(); }

 private:
  const size_t max_bytes_;
  std::atomic<size_t> held_ = 0;
};

// A share of SharedMemory, given back on destruction.
class HeldMemory {
 public:
  explicit HeldMemory(std::shared_ptr<SharedMemory> memory) : memory_(std::move(memory)) {}
  HeldMemory(HeldMemory&& other) noexcept
      : memory_(std::move(other.memory_)), num_bytes_(std::exchange(other.num_bytes_, 0)) {}
  HeldMemory& operator=(HeldMemory&&) = delete;
  ~HeldMemory() {
    if (memory_) memory_->give_back(num_bytes_);
  }

  bool grow(size_t num_bytes) {
    if (!memory_->take(num_bytes)) return false;
    num_bytes_ += num_bytes;
    return true;
  }

 private:
  std::shared_ptr<SharedMemory> memory_;
  size_t num_bytes_ = 0;
};

// The engine thread's time for token masks: at most half of it, plus a burst. Thread-safe.
class SharedTime {
 public:
  using Clock = std::chrono::steady_clock;

  SharedTime(int64_t burst_ns, Clock::time_point now)
      : burst_ns_(burst_ns), left_ns_(burst_ns), filled_(now) {}

  // The time that all answers together may take now.
  int64_t left_ns(Clock::time_point now) {
    const std::lock_guard lock(mutex_);
    const int64_t passed = std::chrono::nanoseconds(now - filled_).count();
    left_ns_ = std::min(burst_ns_, left_ns_ + std::max(passed, int64_t{0}) / 2);
    filled_ = std::max(filled_, now);
    return std::max(left_ns_, int64_t{0});
  }
  void spend(int64_t num_ns) {
    const std::lock_guard lock(mutex_);
    left_ns_ -= num_ns;
  }

 private:
  const int64_t burst_ns_;
  std::mutex mutex_;
  int64_t left_ns_;
  Clock::time_point filled_;
};

}  // namespace quire::grammar
