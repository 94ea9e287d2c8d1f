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

// Fork and join over a fixed set of threads; the caller is thread 0. Built for many short parallel
// regions in a row (one an operation of a model): workers spin for a moment between regions and
// then sleep, so that an idle engine costs nothing. A worker that comes too late, because the
// machine gave its core to somebody else, is not waited for.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(thread_idx) on the caller's thread and, at most once each, on the workers that are
  // there before the caller's call returns. So a task must hand out its work as it goes (an atomic
  // counter), never a fixed share to each thread. Returns when all calls have ended. Regions do
  // not nest, and only one thread at a time may call this. Where calls throw, the first exception
  // is thrown on once all have ended.
  void run(const std::function<void(int thread_idx)>& task);

  // Calls body(i) for each i of [0, count), handed out in order, one at a time; which thread takes
  // which i is not determined, so body's result must not depend on it.
  void parallel_for(int64_t count, const std::function<void(int64_t i)>& body);

 private:
  void worker_loop(int thread_idx);
  void call_task(int thread_idx);
  uint64_t wait_for_region(uint64_t seen);
  uint64_t join_region();

  // One word says which region it is, whether it may still be joined, and how many workers have.
  static constexpr uint64_t kRegion = 1U << 17;
  static constexpr uint64_t kOpen = 1U << 16;
  static constexpr uint64_t kNumJoined = kOpen - 1;

  std::vector<std::thread> workers_;
  const std::function<void(int)>* task_ = nullptr;
  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint64_t> num_ended_ = 0;  // of the workers that joined the region
  std::atomic<bool> stopping_ = false;
  std::atomic<int> num_sleeping_ = 0;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::exception_ptr error_;  // of the region
};

}  // namespace quire
