// Threads for what must not run on the engine's thread or the transport's: parsing, templates,
// tokenizing, formatting.
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

  // Throws std::system_error where the system has no more threads.
  explicit WorkerPool(int num_threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // In order of arrival. The queue has no bound of its own: each connection has one request in
  // work, and connections are bounded; GrammarQueue bounds grammars that wait. What a task
  // throws is logged.
  void post(Task task);
  // Waits for the tasks that have begun; the others, and later ones, are dropped.
  void stop();
  size_t num_waiting() const;  // tasks that have not begun

  struct Load {
    size_t num_unfinished = 0;  // waiting or in work
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
