// What has been compiled, by grammar: the least recently used goes first.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "grammar/grammar_compiler.h"
#include "grammar/xgrammar_door.h"

namespace quire::grammar {

// Thread-safe. Final refusals are kept too: the same bad grammar costs its compilation once.
class CompileCache {
 public:
  explicit CompileCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // What `compile` returned for this key: earlier, now on another thread, or now on this one.
  CompileResult get(const std::string& key, const std::function<CompileOutcome()>& compile);

  // What is there already; never waits.
  std::optional<CompileResult> find(const std::string& key);

  GrammarStats stats() const;

 private:
  struct Entry {
    std::optional<CompileResult> result;  // empty while it is compiled
    size_t num_bytes = 0;
    std::list<std::string>::iterator used;  // in by_use_, once there is a result
  };

  CompileResult wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Entry>& entry);
  void touch(const Entry& entry);
  void keep(const std::string& key, const std::shared_ptr<Entry>& entry, bool is_final);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::list<std::string> by_use_;  // the last used first
  GrammarStats stats_;
};

}  // namespace quire::grammar
