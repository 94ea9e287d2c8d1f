#include "base/rank_join.h"

namespace quire {

Status RankJoin::join(const Status& status) {
  std::unique_lock lock(mutex_);
  if (!status.ok()) return fail(status, lock);
  if (!error_.ok()) return error_;
  if (++num_joined_ < num_ranks_) {
    const uint64_t join = num_joins_;
    joined_.wait(lock, [&] { return num_joins_ != join || !error_.ok(); });
    return error_;
  }
  if (join_others_) {
    lock.unlock();
    const Status others = join_others_();
    lock.lock();
    if (!others.ok()) return fail(others, lock);
    if (!error_.ok()) return error_;
  }
  num_joined_ = 0;
  ++num_joins_;
  joined_.notify_all();
  return {};
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
