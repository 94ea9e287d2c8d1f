#include "server/grammar_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guarded.h"

namespace quire::server {

Status GrammarQueue::push(int key_idx, const void* id, int num_answers, WorkerPool::Task task) {
  std::list<Entry> entry;
  entry.push_back({.id = id, .num_answers = num_answers, .task = std::move(task)});
  const std::lock_guard lock(mutex_);
  if (num_calls_ >= limits_.max_calls ||
      (num_calls_ > 0 && num_answers_ + num_answers > limits_.max_answers)) {
    return resource_exhausted(fmt::format(
        "[server] {} calls wait for their grammars to be compiled; try again later", num_calls_));
  }
  // The runner is posted before the entry is inserted, because an entry without a runner would wait
  // forever; a runner without an entry does nothing. The runner blocks on the lock until the entry
  // is there. After the post, only creating the key's list allocates memory.
  workers_.post([this] { run_next(); });
  std::list<Entry>& of_key = by_key_[key_idx];
  of_key.splice(of_key.end(), entry);
  ++num_calls_;
  num_answers_ += num_answers;
  return {};
}

bool GrammarQueue::remove(const void* id) {
  Entry removed;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  for (auto of_key = by_key_.begin(); of_key != by_key_.end(); ++of_key) {
    const auto entry = std::ranges::find(of_key->second, id, &Entry::id);
    if (entry == of_key->second.end()) continue;
    removed = take(of_key, entry);
    return true;
  }
  return false;
}

int GrammarQueue::num_waiting() const {
  const std::lock_guard lock(mutex_);
  return num_calls_;
}

void GrammarQueue::run_all() {
  bool is_left = true;
  while (is_left) {
    run_guarded("[server] a waiting call is given up", [&] { is_left = run_next(); });
  }
}

// Runs the oldest call of the next key in turn. The queue can be empty, since calls can be removed.
bool GrammarQueue::run_next() {
  Entry next;
  {
    const std::lock_guard lock(mutex_);
    if (by_key_.empty()) return false;
    auto of_key = by_key_.upper_bound(last_key_idx_);
    if (of_key == by_key_.end()) of_key = by_key_.begin();
    last_key_idx_ = of_key->first;
    next = take(of_key, of_key->second.begin());
  }
  next.task();
  return true;
}

GrammarQueue::Entry GrammarQueue::take(std::map<int, std::list<Entry>>::iterator of_key,
                                       std::list<Entry>::iterator entry) {
  Entry taken = std::move(*entry);
  of_key->second.erase(entry);
  if (of_key->second.empty()) by_key_.erase(of_key);
  --num_calls_;
  num_answers_ -= taken.num_answers;
  return taken;
}

}  // namespace quire::server
