// Thread pools for work that would block the engine's or the transport's thread: parsing,
// templates, tokenizing, formatting.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire::server {

class WorkerPool {
 public:
  using Task = std::function<void()>;

  // Throws std::system_error if the system cannot create a thread.
  explicit WorkerPool(int num_threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Queues a task; tasks start in order of arrival. The queue itself has no bound: each connection
  // has at most one request in progress, and connections are bounded; GrammarQueue bounds the
  // requests that wait for grammars. An exception from a task is logged.
  void post(Task task);
  // Waits for the running tasks. Queued and later tasks are dropped.
  void stop();

  struct Load {
    size_t num_waiting = 0;     // not started
    size_t num_unfinished = 0;  // queued or running
    int64_t num_finished = 0;
  };
  Load load() const;

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  size_t num_running_ = 0;
  int64_t num_finished_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace quire::server
