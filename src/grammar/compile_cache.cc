#include "grammar/compile_cache.h"

namespace quire::grammar {
namespace {

CompileOutcome run(const std::function<CompileOutcome()>& compile,
                   CompileOutcome failure) noexcept {
  try {
    return compile();
  } catch (...) {
    return failure;
  }
}

}  // namespace

CompileResult CompileCache::get(const std::string& key,
                                const std::function<CompileOutcome()>& compile) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ++stats_.num_hits;
    // Keeps the entry alive: it may be erased from the map during the wait.
    const std::shared_ptr<Entry> entry = found->second;
    return wait_for(lock, entry);
  }
  // Nothing may throw between the insertion and publish(); otherwise waiters would block forever.
  // So the list node and the failure are allocated first.
  const auto entry = std::make_shared<Entry>();
  entry->use.push_front(key);
  CompileOutcome failure = {
      .result = resource_exhausted(
          "[grammar] compilation failed, probably for lack of memory; try again later"),
      .is_final = false};
  entries_.emplace(key, entry);
  ++stats_.num_compiled;
  lock.unlock();
  CompileOutcome outcome = run(compile, std::move(failure));
  lock.lock();
  publish(entry, std::move(outcome));
  lock.unlock();
  compiled_.notify_all();
  return *entry->result;
}

std::optional<CompileResult> CompileCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second->result) return std::nullopt;
  ++stats_.num_hits;
  touch(*found->second);
  return found->second->result;
}

void CompileCache::touch(const Entry& entry) {
  // An entry without bytes is not in by_use_: it was not kept or has been dropped.
  if (entry.num_bytes > 0) by_use_.splice(by_use_.begin(), by_use_, entry.used);
}

CompileResult CompileCache::wait_for(std::unique_lock<std::mutex>& lock,
                                     const std::shared_ptr<Entry>& entry) {
  compiled_.wait(lock, [&] { return entry->result.has_value(); });
  touch(*entry);
  return *entry->result;
}

void CompileCache::publish(const std::shared_ptr<Entry>& entry, CompileOutcome outcome) noexcept {
  entry->result = std::move(outcome.result);
  const CompileResult& result = *entry->result;
  const std::string& key = entry->use.front();
  constexpr size_t kEntryBytes = 512;
  constexpr size_t kRefusalBytes = 2048;  // of a message, whose size one_line() bounds
  const size_t num_bytes =
      2 * key.size() + kEntryBytes + (result.ok() ? (*result)->num_bytes : kRefusalBytes);
  if (!outcome.is_final || num_bytes > max_bytes_) {
    entries_.erase(key);
    return;
  }
  entry->num_bytes = num_bytes;
  entry->used = entry->use.begin();
  by_use_.splice(by_use_.begin(), entry->use);
  stats_.cache_bytes += num_bytes;
  while (stats_.cache_bytes > max_bytes_) {
    const auto oldest = entries_.find(by_use_.back());
    stats_.cache_bytes -= oldest->second->num_bytes;
    oldest->second->num_bytes = 0;
    entries_.erase(oldest);
    by_use_.pop_back();
  }
}

GrammarStats CompileCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace quire::grammar
