#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>

namespace quire {
namespace {

// About 50 µs of looking before a worker sleeps: longer than the gap between two operations of a
// step, shorter than anything a user would see on an idle machine.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  for (int i = 1; i < num_threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  {
    const std::lock_guard lock(mutex_);
    region_.fetch_add(1);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const std::function<void(int)>& task) {
  if (workers_.empty()) return task(0);
  task_ = &task;
  num_pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  if (num_sleeping_.load(std::memory_order_seq_cst) > 0) {
    // Taking the mutex once orders this wake-up after the sleeper's own check.
    { const std::lock_guard lock(mutex_); }
    wake_.notify_all();
  }
  task(0);
  for (int spins = 0; num_pending_.load(std::memory_order_acquire) > 0; ++spins) {
    // With fewer cores than threads the worker needs this core to finish.
    spins % kSpins == kSpins - 1 ? std::this_thread::yield() : relax();
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

void ThreadPool::wait_for_region(uint64_t seen) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (region_.load(std::memory_order_acquire) != seen) return;
    relax();
  }
  std::unique_lock lock(mutex_);
  num_sleeping_.fetch_add(1, std::memory_order_seq_cst);
  wake_.wait(lock, [&] { return region_.load(std::memory_order_seq_cst) != seen; });
  num_sleeping_.fetch_sub(1, std::memory_order_relaxed);
}

void ThreadPool::worker_loop(int thread_idx) {
  uint64_t seen = 0;
  while (true) {
    wait_for_region(seen);
    ++seen;  // regions do not overlap, so none is ever skipped
    if (stopping_) return;
    (*task_)(thread_idx);
    num_pending_.fetch_sub(1, std::memory_order_release);
  }
}

int num_usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace quire
