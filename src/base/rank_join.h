// Lets the threads of several ranks wait for each other, and a rank that fails release the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "quire/status.h"

namespace quire {

class RankJoin {
 public:
  // `on_failure` is called once, by the first rank that fails: it releases ranks that wait for that
  // rank elsewhere.
  RankJoin(int num_ranks, std::function<void()> on_failure)
      : num_ranks_(num_ranks), on_failure_(std::move(on_failure)) {}
  RankJoin(const RankJoin&) = delete;
  RankJoin& operator=(const RankJoin&) = delete;

  // Waits until every rank has made the same number of calls; each makes them from one thread at a
  // time. Once a rank has passed an error, this and all later calls return it at once.
  Status join(const Status& status);
  bool has_failed() const { return has_failed_.load(); }

 private:
  const int num_ranks_;
  const std::function<void()> on_failure_;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::condition_variable joined_;
  Status error_;  // the first
  int num_joined_ = 0;
  uint64_t num_joins_ = 0;
};

}  // namespace quire
