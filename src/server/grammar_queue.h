// A bounded queue of calls that wait for their grammar to be compiled. The bound keeps sequences
// that cannot run yet from using up the engine's capacity. API keys take turns.
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
  int max_answers = 64;  // sequences of all queued calls; a single call may have more
};

// Thread-safe.
class GrammarQueue {
 public:
  GrammarQueue(WorkerPool& workers, const GrammarQueueLimits& limits)
      : workers_(workers), limits_(limits) {}

  // Runs `task` on a worker when its turn comes. `id` identifies the entry for remove(). Error:
  // resource_exhausted if too many calls wait. If push() throws, the queue is unchanged.
  Status push(int key_idx, const void* id, int num_answers, WorkerPool::Task task);
  // Removes the entry; returns whether it was still waiting.
  bool remove(const void* id);

  // Runs all waiting tasks on the caller's thread. For the shutdown, when all workers may be busy
  // compiling.
  void run_all();

  int num_waiting() const;

 private:
  struct Entry {
    const void* id = nullptr;
    int num_answers = 0;
    WorkerPool::Task task;
  };

  bool run_next();  // false: the queue is empty
  Entry take(std::map<int, std::list<Entry>>::iterator of_key, std::list<Entry>::iterator entry);

  WorkerPool& workers_;
  const GrammarQueueLimits limits_;
  mutable std::mutex mutex_;
  std::map<int, std::list<Entry>> by_key_;  // no list is empty
  int last_key_idx_ = -1;                   // the key that was served last
  int num_calls_ = 0;
  int num_answers_ = 0;
};

}  // namespace quire::server
