#include "base/thread_pool.h"

#include <utility>

#include "base/log.h"
#include "cpu_relax.h"

namespace quire {
namespace {

// A worker polls for about 50 µs before it sleeps: longer than the gap between two operations of a
// step, and too short to load an idle machine noticeably.
constexpr int kSpins = 2000;

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  // Throws std::system_error if the system has no more threads, std::bad_alloc if there is no
  // memory. If an exception left the constructor, running threads would be destroyed, which ends
  // the process.
  try {
    for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (const std::exception& error) {
    log_warning("[threads] only {} of {} threads could be started; {}", workers_.size() + 1,
                num_threads, error.what());
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);
    state_.fetch_add(kRegion);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const std::function<void(int)>& task) {
  if (workers_.empty()) return task(0);
  task_ = &task;
  num_ended_.store(0, std::memory_order_relaxed);
  const uint64_t region = state_.load(std::memory_order_relaxed) / kRegion + 1;
  state_.store(region * kRegion + kOpen, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    // Locking the mutex once orders this wake-up after the sleeping thread's own check.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  call_task(0);
  const uint64_t num_joined = state_.fetch_and(~kOpen, std::memory_order_acq_rel) & kNumJoined;
  for (int spins = 0; num_ended_.load(std::memory_order_acquire) < num_joined; ++spins) {
    // With fewer cores than threads the worker needs this core to finish.
    spins % kSpins == kSpins - 1 ? std::this_thread::yield() : cpu_relax();
  }
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

// No exception may leave a thread while others still use the caller's stack.
void ThreadPool::call_task(int thread_idx) {
  try {
    (*task_)(thread_idx);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadPool::parallel_for(int64_t count, const std::function<void(int64_t)>& body) {
  if (count <= 0) return;
  if (workers_.empty() || count == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::atomic<int64_t> next = 0;
  run([&](int) {
    for (int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) body(i);
  });
}

// Waits until the region differs from `seen`, and returns its number.
uint64_t ThreadPool::wait_for_region(uint64_t seen) {
  const auto region = [&] { return state_.load(std::memory_order_seq_cst) / kRegion; };
  for (int spins = 0; spins < kSpins; ++spins) {
    if (region() != seen) return region();
    cpu_relax();
  }
  std::unique_lock lock(mutex_);
  num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
  wake_.wait(lock, [&] { return region() != seen; });
  num_sleeping_.fetch_sub(1, std::memory_order_relaxed);
  return region();
}

// Joins the open region and returns its number; returns 0 if none is open.
uint64_t ThreadPool::join_region() {
  uint64_t state = state_.load(std::memory_order_acquire);
  while ((state & kOpen) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) {
      return state / kRegion;
    }
  }
  return 0;
}

void ThreadPool::worker_loop(int thread_idx) {
  uint64_t seen = 0;
  while (true) {
    seen = wait_for_region(seen);
    if (stopping_) return;
    const uint64_t joined = join_region();
    if (joined == 0) continue;
    seen = joined;
    call_task(thread_idx);
    num_ended_.fetch_add(1, std::memory_order_release);
  }
}

}  // namespace quire
