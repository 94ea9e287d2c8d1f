// Structured output: turns a grammar that restricts a sequence's text into a constraint on its
// tokens.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "grammar/grammar_compiler.h"
#include "quire/status.h"
#include "server/engine_api.h"
#include "server/workers.h"

namespace quire::server {

// Compiles grammars into token constraints. The default object refuses every grammar. Thread-safe.
struct ConstraintCompiler {
  // Compiles a grammar, which may take seconds.
  std::function<Result<ConstraintFactory>(const GrammarSpec&)> compile = [](const GrammarSpec&) {
    return unimplemented("[server] this server does not support structured output");
  };
  // Returns the cached result for the same grammar, if there is one; does not compile.
  std::function<std::optional<Result<ConstraintFactory>>(const GrammarSpec&)> find =
      [](const GrammarSpec&) { return std::nullopt; };
  // Makes running and later compilations end soon with the error unavailable.
  std::function<void()> stop = [] {};
  std::function<GrammarStats()> stats = [] { return GrammarStats(); };
};

// Makes a compiler for the engine's tokenizer. Requests with the same grammar share one
// compilation.
ConstraintCompiler make_constraint_compiler(const Engine& engine);

// Returns a constraint that takes effect after the marker `end`; before that every token is
// allowed. It is used for prompts that open a reasoning block, and for calls that the model may
// choose. With `end_token`, only this token is the marker, as in the output parser. `engine` and
// `end` must outlive the constraint.
ConstraintFactory after_marker(ConstraintFactory constraint, const EngineApi& engine,
                               std::string_view end = "</think>",
                               std::optional<int32_t> end_token = {});

struct GrammarQueueLimits {
  int max_requests = 32;
  int max_sequences = 64;  // of all queued requests; a single request may have more
};

// A bounded queue of requests that wait for their grammar to be compiled. The bound keeps sequences
// that cannot run yet from using up the engine's capacity. API keys take turns. Thread-safe.
class GrammarQueue {
 public:
  GrammarQueue(WorkerPool& workers, const GrammarQueueLimits& limits)
      : workers_(workers), limits_(limits) {}

  // Runs `task` on a worker when its turn comes. `id` identifies the entry for remove(). Error:
  // resource_exhausted if too many requests wait. If push() throws, the queue is unchanged.
  Status push(int key_idx, const void* id, int num_sequences, WorkerPool::Task task);
  // Removes the entry; returns whether it was still waiting.
  bool remove(const void* id);

  // Runs all waiting tasks on the caller's thread. A shutdown uses this, because all workers may be
  // busy compiling.
  void run_all();

  int num_waiting() const;

 private:
  struct Entry {
    const void* id = nullptr;
    int num_sequences = 0;
    WorkerPool::Task task;
  };

  bool run_next();  // false: the queue is empty
  Entry remove_entry(std::map<int, std::list<Entry>>::iterator of_key,
                     std::list<Entry>::iterator entry);

  WorkerPool& workers_;
  const GrammarQueueLimits limits_;
  mutable std::mutex mutex_;
  std::map<int, std::list<Entry>> by_key_;  // no list is empty
  int last_key_idx_ = -1;                   // the key that was served last
  int num_requests_ = 0;
  int num_sequences_ = 0;
};

}  // namespace quire::server
