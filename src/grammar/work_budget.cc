#include "grammar/work_budget.h"

#include <algorithm>

#include "base/check.h"
#include "base/machine.h"

namespace quire::grammar {
namespace {

constinit thread_local int64_t deadline_ns = INT64_MAX;  // of this thread's CPU clock
constinit thread_local int64_t work_left = INT64_MAX;    // without the work since the last check
constinit thread_local int64_t work_allowed = INT64_MAX;
constinit thread_local const std::atomic<bool>* stop_flag = nullptr;
constinit thread_local size_t compile_bytes_left = SIZE_MAX;
constinit thread_local size_t state_bytes_left = SIZE_MAX;

// Bytes of a state in the parser's history, including its part of the row.
constexpr size_t kStateBytes = 48;

void charge(size_t num_bytes, size_t& bytes_left) {
  if (num_bytes > bytes_left) throw BudgetExceeded("memory");
  if (bytes_left != SIZE_MAX) bytes_left -= num_bytes;
}

void throw_if_stopped(const std::atomic<bool>* stop) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw WorkStopped("stopped");
}

}  // namespace

WorkBudget::WorkBudget(const Allowance& allowance) {
  QUIRE_CHECK(deadline_ns == INT64_MAX, "[grammar] this thread already has a work budget");
  // Stays below INT64_MAX, the value for no budget.
  deadline_ns = thread_cpu_ns() + std::min(allowance.cpu_ns, INT64_MAX / 2);
  compile_bytes_left = allowance.compile_bytes;
  state_bytes_left = allowance.state_bytes;
  work_allowed = allowance.work;
  work_left = allowance.work;
  // Without any time or work left, the first unit of work fails.
  const bool has_some = allowance.cpu_ns > 0 && allowance.work >= kWorkPerClockCheck;
  work_until_clock_check = has_some ? kWorkPerClockCheck : 1;
}

WorkBudget::~WorkBudget() {
  work_allowed = INT64_MAX;
  work_left = INT64_MAX;
  deadline_ns = INT64_MAX;
  compile_bytes_left = SIZE_MAX;
  state_bytes_left = SIZE_MAX;
}

int64_t WorkBudget::left_ns() const {
  return deadline_ns - thread_cpu_ns();
}

int64_t WorkBudget::spent_work() const {
  return work_allowed - work_left + kWorkPerClockCheck - work_until_clock_check;
}

size_t WorkBudget::left_state_bytes() const {
  return state_bytes_left;
}

StopScope::StopScope(const std::atomic<bool>& stop) {
  QUIRE_CHECK(stop_flag == nullptr, "[grammar] this thread already has a stop flag");
  throw_if_stopped(&stop);
  stop_flag = &stop;
}

StopScope::~StopScope() {
  stop_flag = nullptr;
}

void check_clock() {
  if (work_left != INT64_MAX) work_left -= kWorkPerClockCheck - work_until_clock_check;
  work_until_clock_check = kWorkPerClockCheck;
  throw_if_stopped(stop_flag);
  if (work_left < 0) throw BudgetExceeded("work");
  if (deadline_ns == INT64_MAX || thread_cpu_ns() < deadline_ns) return;
  throw BudgetExceeded("time");
}

void charge_compile_bytes(size_t num_bytes) {
  constexpr size_t kBytesPerWork = 64;  // writing this many takes about as long as a unit of work
  charge_work(1 + num_bytes / kBytesPerWork);
  charge(num_bytes, compile_bytes_left);
}

void charge_states(size_t num_states) {
  charge((num_states + 1) * kStateBytes, state_bytes_left);
}

int64_t SharedTime::refill(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const int64_t passed = std::chrono::nanoseconds(now - refilled_).count();
  available_ns_ = std::min(burst_ns_, available_ns_ + std::max(passed, int64_t{0}) / 2);
  refilled_ = std::max(refilled_, now);
  return std::max(available_ns_, int64_t{0});
}

void SharedTime::spend(int64_t num_ns) {
  const std::lock_guard lock(mutex_);
  available_ns_ -= num_ns;
}

}  // namespace quire::grammar
