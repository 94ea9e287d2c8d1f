#include "base/rank_join.h"

namespace quire {

Result<std::string> RankJoin::broadcast(std::string bytes) {
  QUIRE_ASSIGN_OR_RETURN(Message all, exchange({}, {.bytes = std::move(bytes)}));
  return std::move(all.bytes);
}

Result<bool> RankJoin::all_agree(bool agrees) {
  QUIRE_ASSIGN_OR_RETURN(const Message all, exchange({}, {.bytes = {}, .agrees = agrees}));
  return all.agrees;
}

Result<RankJoin::Message> RankJoin::exchange(const Status& status, Message own) {
  std::unique_lock lock(mutex_);
  if (!status.ok()) return fail(status, lock);
  if (!error_.ok()) return error_;
  if (!own.bytes.empty()) next_.bytes = std::move(own.bytes);
  next_.agrees = next_.agrees && own.agrees;
  if (++num_joined_ == num_ranks_) {
    complete(lock);
  } else {
    const uint64_t join = num_joins_;
    joined_.wait(lock, [&] { return num_joins_ != join || !error_.ok(); });
  }
  if (!error_.ok()) return error_;
  return last_;
}

void RankJoin::complete(std::unique_lock<std::mutex>& lock) {
  Message all = std::exchange(next_, {});
  if (join_others_) {
    lock.unlock();
    Result<std::string> first = join_others_(std::move(all.bytes));
    lock.lock();
    if (!first.ok()) (void)fail(first.status(), lock);
    if (!error_.ok()) return;
    all.bytes = *std::move(first);
  }
  last_ = std::move(all);
  num_joined_ = 0;
  ++num_joins_;
  joined_.notify_all();
}

Status RankJoin::fail(const Status& status, std::unique_lock<std::mutex>& lock) {
  if (error_.ok()) {
    error_ = status;
    has_failed_.store(true);
    joined_.notify_all();
    lock.unlock();
    on_failure_(status);
    lock.lock();
  }
  return error_;
}

}  // namespace quire
