#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire {

// Fork and join over a fixed set of threads; the caller is thread 0. Designed for many short
// parallel regions in a row (one per operation of a model): workers spin briefly between regions
// and then sleep, so that an idle engine uses no CPU time. The pool does not wait for a worker that
// arrives late because the machine gave its core to another program.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(thread_idx) on the caller's thread and, at most once each, on the workers that
  // arrive before the caller's call returns. Therefore a task must distribute its work dynamically
  // (by an atomic counter), never as a fixed share per thread. Returns when all calls have ended.
  // Regions do not nest, and only one thread at a time may call this. If calls throw, the first
  // exception is rethrown once all have ended.
  void run(const std::function<void(int thread_idx)>& task);

  // Calls body(i) for each i of [0, count), distributed one at a time in ascending order. The
  // thread that runs an i is not determined, so body's result must not depend on it.
  void parallel_for(int64_t count, const std::function<void(int64_t i)>& body);

 private:
  void worker_loop(int thread_idx);
  void call_task(int thread_idx);
  uint64_t wait_for_region(uint64_t seen);
  uint64_t join_region();

  // One word holds the region's number, whether it is open, and how many workers have joined.
  static constexpr uint64_t kRegion = 1U << 17;
  static constexpr uint64_t kOpen = 1U << 16;
  static constexpr uint64_t kNumJoined = kOpen - 1;

  std::vector<std::thread> workers_;
  const std::function<void(int)>* task_ = nullptr;
  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint64_t> num_ended_ = 0;  // workers that joined the region and have ended
  std::atomic<bool> stopping_ = false;
  std::atomic<int> num_sleeping_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr error_;  // first exception of the region
};

}  // namespace quire
