#include "grammar/compile_cache.h"

namespace quire::grammar {

CompileResult CompileCache::get(const std::string& key,
                                const std::function<CompileOutcome()>& compile) {
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    ++stats_.num_hits;
    return wait_for(lock, found->second);
  }
  const auto entry = std::make_shared<Entry>();
  entries_.emplace(key, entry);
  ++stats_.num_compiled;
  lock.unlock();
  CompileOutcome outcome = compile();
  lock.lock();
  entry->result = outcome.result;
  keep(key, entry, outcome.is_final);
  lock.unlock();
  compiled_.notify_all();
  return std::move(outcome.result);
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
  // It may have gone from the cache meanwhile.
  if (entry.num_bytes > 0) by_use_.splice(by_use_.begin(), by_use_, entry.used);
}

CompileResult CompileCache::wait_for(std::unique_lock<std::mutex>& lock,
                                     const std::shared_ptr<Entry>& entry) {
  compiled_.wait(lock, [&] { return entry->result.has_value(); });
  touch(*entry);
  return *entry->result;
}

void CompileCache::keep(const std::string& key, const std::shared_ptr<Entry>& entry,
                        bool is_final) {
  const CompileResult& result = *entry->result;
  constexpr size_t kEntryBytes = 512;
  const size_t num_bytes = 2 * key.size() + kEntryBytes + (result.ok() ? (*result)->num_bytes : 0);
  if (!is_final || num_bytes > max_bytes_) {
    entries_.erase(key);
    return;
  }
  entry->num_bytes = num_bytes;
  by_use_.push_front(key);
  entry->used = by_use_.begin();
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
