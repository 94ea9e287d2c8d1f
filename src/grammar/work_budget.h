// Bounds the cost of grammars: WorkBudget and StopScope end one call into XGrammar; all grammars of
// an engine share one SharedTime. The patched sources of XGrammar include this header
// (cmake/xgrammar.cmake) and call the charge functions.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>

namespace quire::grammar {

struct BudgetExceeded : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct WorkStopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Allowance {
  int64_t work = INT64_MAX;    // units of charge_work(), the same on any machine and at any load
  int64_t cpu_ns = INT64_MAX;  // of the thread's own CPU time
  size_t compile_bytes = SIZE_MAX;  // of rules, expressions and token masks, even discarded ones
  size_t state_bytes = SIZE_MAX;    // of the parser's states, even those rolled back
};

// While a budget exists, this thread's calls into XGrammar throw BudgetExceeded when they exceed
// the allowance. At most one per thread.
class WorkBudget {
 public:
  explicit WorkBudget(const Allowance& allowance);
  ~WorkBudget();
  WorkBudget(const WorkBudget&) = delete;
  WorkBudget& operator=(const WorkBudget&) = delete;

  int64_t left_ns() const;  // may be below 0
  int64_t spent_work() const;
  size_t left_state_bytes() const;
};

// Lets another thread end a call into XGrammar: while a scope exists, this thread's calls throw
// WorkStopped once `stop` is set. The constructor throws it if `stop` is already set. At most one
// scope per thread.
class StopScope {
 public:
  explicit StopScope(const std::atomic<bool>& stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;
};

// Reads the clock and the stop flag, and throws BudgetExceeded or WorkStopped.
void check_clock();

// A unit of work is one visit of an edge, a state, an expression or a token. The clock is read once
// per this many units, because reading it takes longer than a unit.
inline constexpr int64_t kWorkPerClockCheck = 2048;
inline thread_local int64_t work_until_clock_check = kWorkPerClockCheck;

inline void charge_work(size_t amount = 1) {
  work_until_clock_check -= static_cast<int64_t>(amount);
  if (work_until_clock_check <= 0) check_clock();
}
void charge_compile_bytes(size_t num_bytes);
void charge_states(size_t num_states);

// The engine thread's time for token masks: at most half of it, plus a burst. Thread-safe.
class SharedTime {
 public:
  using Clock = std::chrono::steady_clock;

  SharedTime(int64_t burst_ns, Clock::time_point now)
      : burst_ns_(burst_ns), available_ns_(burst_ns), refilled_(now) {}

  // Adds half of the time since the last call, and returns the time that all sequences together may
  // take now.
  int64_t refill(Clock::time_point now);
  void spend(int64_t num_ns);

 private:
  const int64_t burst_ns_;
  std::mutex mutex_;
  int64_t available_ns_;  // below 0 after overspending
  Clock::time_point refilled_;
};

}  // namespace quire::grammar
