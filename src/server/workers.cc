#include "server/workers.h"

#include <utility>

#include "base/guarded.h"

namespace quire::server {

WorkerPool::WorkerPool(int num_threads) {
  try {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { loop(); });
  } catch (...) {  // destroying a joinable std::thread would terminate the process
    stop();
    throw;
  }
}

WorkerPool::~WorkerPool() {
  stop();
}

void WorkerPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_one();
}

WorkerPool::Load WorkerPool::load() const {
  const std::lock_guard lock(mutex_);
  return {.num_waiting = tasks_.size(),
          .num_unfinished = tasks_.size() + num_running_,
          .num_finished = num_finished_};
}

void WorkerPool::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (stopping_) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ++num_running_;
    lock.unlock();
    // An exception, most likely std::bad_alloc, ends only this task. The task's state is freed
    // outside the lock too.
    run_guarded("[server] a task of a worker thread failed", [&] { task(); });
    task = nullptr;
    lock.lock();
    --num_running_;
    ++num_finished_;
  }
}

}  // namespace quire::server
