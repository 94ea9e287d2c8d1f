#include "base/rank_join.h"

namespace quire {

Result<std::string> RankJoin::join(const Status& status, std::string bytes) {
  std::unique_lock lock(mutex_);
  if (!status.ok()) return fail(status, lock);
  if (!error_.ok()) return error_;
  if (!bytes.empty()) own_bytes_ = std::move(bytes);
  if (++num_joined_ < num_ranks_) {
    const uint64_t join = num_joins_;
    joined_.wait(lock, [&] { return num_joins_ != join || !error_.ok(); });
    if (!error_.ok()) return error_;
    return bytes_;
  }
  Result<std::string> first = std::exchange(own_bytes_, {});
  if (join_others_) {
    lock.unlock();
    first = join_others_(std::move(*first));
    lock.lock();
    if (!first.ok()) return fail(first.status(), lock);
    if (!error_.ok()) return error_;
  }
  bytes_ = std::move(*first);
  were_all_for_ = std::exchange(are_all_for_, true);
  num_joined_ = 0;
  ++num_joins_;
  joined_.notify_all();
  return bytes_;
}

Result<bool> RankJoin::all_agree(bool agrees) {
  {
    const std::lock_guard lock(mutex_);
    are_all_for_ = are_all_for_ && agrees;
  }
  QUIRE_RETURN_IF_ERROR(join({}));
  const std::lock_guard lock(mutex_);
  return were_all_for_;
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
