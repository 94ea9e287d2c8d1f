// Calls that wait for their grammar: few, so that the engine's seats are not taken by what cannot
// use them yet, and by turns of their keys.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <mutex>

#include "quire/status.h"
#include "server/workers.h"

namespace quire::server {

struct GrammarQueueLimits {
  int max_calls = 32;
  int max_answers = 64;  // of these calls together; one call alone may have more
};

// Thread-safe.
class GrammarQueue {
 public:
  GrammarQueue(WorkerPool& workers, const GrammarQueueLimits& limits)
      : workers_(workers), limits_(limits) {}

  // Runs `task` on one of the workers when its turn has come. `id` is whatever tells it apart.
  // resource_exhausted: too much waits. A push that throws leaves nothing behind.
  Status push(int key_idx, const void* id, int num_answers, WorkerPool::Task task);
  // Whether it still waited: now it is forgotten.
  bool remove(const void* id);

  // Runs all tasks that wait, on the caller's thread. For a server that ends: its workers may be
  // busy with compilations.
  void run_all();

  int num_waiting() const;

 private:
  struct Entry {
    const void* id = nullptr;
    int num_answers = 0;
    WorkerPool::Task task;
  };

  bool run_next();  // false: none waits
  Entry take(std::map<int, std::list<Entry>>::iterator of_key, std::list<Entry>::iterator entry);

  WorkerPool& workers_;
  const GrammarQueueLimits limits_;
  mutable std::mutex mutex_;
  std::map<int, std::list<Entry>> by_key_;  // none is empty
  int last_key_idx_ = -1;                   // whose turn it was
  int num_calls_ = 0;
  int num_answers_ = 0;
};

}  // namespace quire::server
