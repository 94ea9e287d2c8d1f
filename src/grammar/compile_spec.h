// Compiles grammars with XGrammar. No other header includes XGrammar, and its exceptions do not
// leave these functions.
#pragma once

#include <xgrammar/xgrammar.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/byte_budget.h"
#include "grammar/grammar_compiler.h"
#include "grammar/work_budget.h"
#include "quire/request.h"
#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire::grammar {

// A tokenizer's vocabulary for grammars: the bytes that each token adds to a text.
struct TokenTable {
  // Indexed by id. Empty: a token that ends a sequence, an id without a token, or a token that adds
  // nothing.
  std::vector<std::string> bytes;
  std::vector<int32_t> end_ids;  // sorted; only ids of the vocabulary
  // Tokens with bytes that are not special, as a mask of one bit per id.
  std::vector<uint32_t> may_be_allowed;
};

inline void set_bit(std::span<uint32_t> mask, int32_t id) {
  mask[static_cast<size_t>(id) / 32] |= 1U << (id % 32);
}
inline bool has_bit(std::span<const uint32_t> mask, int32_t id) {
  const size_t word = static_cast<size_t>(id) / 32;
  return word < mask.size() && (mask[word] >> (id % 32) & 1U) != 0;
}

// The grammar of a schema that plain_schema() has returned.
xgrammar::Grammar schema_grammar(std::string_view schema);

// A vocabulary in the form that XGrammar compiles for.
struct Vocabulary {
  TokenTable tokens;
  xgrammar::TokenizerInfo info;
};
// Takes the bytes from the tokenizer's decoder, so that byte-level and byte-fallback vocabularies
// need no distinction.
TokenTable make_token_table(const Tokenizer& tokenizer, std::span<const int32_t> end_ids);
Vocabulary make_vocabulary(TokenTable tokens);

struct Compiled {
  std::shared_ptr<const Vocabulary> vocabulary;
  xgrammar::CompiledGrammar grammar;
  GrammarLimits limits;
  std::vector<uint32_t> may_be_allowed = {};  // TokenTable's, and the grammar's own special tokens
  ByteShare held;                             // held while anything uses the grammar, cached or not
  size_t num_bytes = 0;                       // as counted by XGrammar, without the vocabulary
};

using CompileResult = Result<std::shared_ptr<const Compiled>>;

// The outcome of a compilation. A refusal is final unless it depends on the load at that moment: on
// the memory of other grammars, or on the time of the first mask.
struct CompileOutcome {
  CompileResult result;
  bool is_final = true;
};

// Compiles `spec` within the limits. `spec` must have passed check_spec. Ends early with
// unavailable once `stop` is set. Throws std::bad_alloc and exceptions not derived from
// std::exception.
CompileOutcome compile_spec(const std::shared_ptr<const Vocabulary>& vocabulary,
                            const GrammarSpec& spec, const GrammarLimits& limits,
                            const std::shared_ptr<ByteBudget>& memory,
                            const std::atomic<bool>& stop);

// Creates the constraint of a new sequence. Its parse is charged to `memory` and `time`.
std::unique_ptr<TokenConstraint> make_grammar_constraint(std::shared_ptr<const Compiled> compiled,
                                                         std::shared_ptr<ByteBudget> memory,
                                                         std::shared_ptr<SharedTime> time);

// Keeps compiled grammars by key and drops the least recently used first. Final refusals are kept
// as well, so that a bad grammar is compiled only once. Thread-safe.
class CompileCache {
 public:
  explicit CompileCache(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Returns the result of `compile` for this key: an earlier result, or the result of a compilation
  // that this or another thread runs now. If `compile` throws, all waiting callers get
  // resource_exhausted, and the next call compiles again.
  CompileResult get(const std::string& key, const std::function<CompileOutcome()>& compile);

  // Returns the result for this key if it exists. Never waits.
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

// XGrammar recurses along the references between a grammar's rules: 64 KiB of text can have
// thousands of levels. Only the used part of the stack takes memory.
inline constexpr size_t kBigStackBytes = size_t{256} << 20;

// Runs `work` on a new thread with a stack of kBigStackBytes and waits for it. Rethrows exceptions
// of `work`. Returns false if the machine has no thread or address space left.
bool run_on_big_stack(const std::function<void()>& work);

}  // namespace quire::grammar
