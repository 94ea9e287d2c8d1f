// Lets the threads of several ranks wait for each other. A rank that fails releases the others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "quire/status.h"

namespace quire {

class RankJoin {
 public:
  // `on_failure` is called once, with the first error: it releases ranks that wait elsewhere.
  // `join_others`, if not null, joins the ranks of other processes; the last rank that arrives
  // calls it for all. Its argument is the bytes that rank 0 passed to broadcast(), or empty if rank
  // 0 is in another process. It returns the bytes of rank 0.
  RankJoin(int num_ranks, std::function<void(const Status& error)> on_failure,
           std::function<Result<std::string>(std::string bytes)> join_others = {})
      : num_ranks_(num_ranks),
        on_failure_(std::move(on_failure)),
        join_others_(std::move(join_others)) {}
  RankJoin(const RankJoin&) = delete;
  RankJoin& operator=(const RankJoin&) = delete;

  // A barrier: the n-th call returns after every rank has made its n-th call. A rank calls from one
  // thread at a time. Any thread may pass an error at any time. From then on, this and all later
  // calls return the error at once.
  Status join(const Status& status) { return exchange(status, {}).status(); }
  // Joins, and returns the bytes of rank 0 on every rank; the other ranks pass no bytes.
  Result<std::string> broadcast(std::string bytes);
  // Joins, and returns whether every rank of this process agrees.
  Result<bool> all_agree(bool agrees);
  bool has_failed() const { return has_failed_.load(); }

 private:
  // The argument of a rank, and the result of a join.
  struct Message {
    std::string bytes;  // of rank 0
    bool agrees = true;
  };

  Result<Message> exchange(const Status& status, Message own);
  // Called by the last rank that arrives.
  void complete(std::unique_lock<std::mutex>& lock);
  Status fail(const Status& status, std::unique_lock<std::mutex>& lock);

  const int num_ranks_;
  const std::function<void(const Status&)> on_failure_;
  const std::function<Result<std::string>(std::string)> join_others_;
  std::atomic<bool> has_failed_ = false;
  std::mutex mutex_;
  std::condition_variable joined_;
  Status error_;  // the first
  int num_joined_ = 0;
  uint64_t num_joins_ = 0;
  Message next_;  // the combined arguments of the ranks that have arrived
  Message last_;  // the last result; the next join completes only after all ranks have read it
};

}  // namespace quire
