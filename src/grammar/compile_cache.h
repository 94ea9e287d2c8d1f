// Keeps compiled grammars by key and drops the least recently used first.
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
#include "grammar/xgrammar_api.h"

namespace quire::grammar {

// Thread-safe. Final refusals are kept as well, so that a bad grammar is compiled only once.
class CompileCache {
 public:
  explicit CompileCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the result of `compile` for this key: an earlier result, or that of a compilation that
  // this or another thread runs now. If `compile` throws, all waiting callers get
  // resource_exhausted, and the next call compiles again.
  CompileResult get(const std::string& key, const std::function<CompileOutcome()>& compile);

  // Returns a result if there is one, and never waits.
  std::optional<CompileResult> find(const std::string& key);

  GrammarStats stats() const;

 private:
  struct Entry {
    std::optional<CompileResult> result;    // empty while the compilation runs
    size_t num_bytes = 0;                   // 0: not kept
    std::list<std::string> use;             // the key, until it moves to by_use_
    std::list<std::string>::iterator used;  // position in by_use_ if num_bytes is not 0
  };

  CompileResult wait_for(std::unique_lock<std::mutex>& lock, const std::shared_ptr<Entry>& entry);
  void touch(const Entry& entry);
  void publish(const std::shared_ptr<Entry>& entry, CompileOutcome outcome) noexcept;

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable compiled_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> entries_;
  std::list<std::string> by_use_;  // most recently used first
  GrammarStats stats_;
};

}  // namespace quire::grammar
