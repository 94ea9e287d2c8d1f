// Compiles grammars into token constraints with XGrammar (Dong et al.,
// https://arxiv.org/abs/2411.15100).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/request.h"
#include "quire/status.h"
#include "tokenizer/tokenizer.h"

namespace quire {

// The place of a tool's parameters within a larger schema, so that errors can name the tool.
struct ToolSchema {
  std::string path;  // "#" or "#/$defs/0"
  std::string tool;
};

// A rule of a composed grammar that has a grammar of its own.
struct GrammarValue {
  enum class Kind : uint8_t {
    kJson,    // `text`: the schema of the JSON value
    kPython,  // `text`: the schema of a value that is written as a Python literal
    kText,    // `text`: the schema of a string with a format, which is written without quotes
    kRegex,   // `text`: a pattern that the whole text matches
    kChecked  // no rule; `text` is a schema that is only checked
  };
  std::string rule = {};  // a letter, then letters and digits
  Kind kind = Kind::kJson;
  std::string text = {};
  std::vector<ToolSchema> tools = {};  // for errors
  std::vector<std::string> barred =
      {};  // texts that must not be in the value; each begins in ASCII
};

// Restricts the text of a sequence.
struct GrammarSpec {
  enum class Kind {
    kJsonObject,  // any JSON object
    kJsonSchema,  // `text`: the schema
    kChoice,      // one of `choices`, literally
    kRegex,       // `text`: a pattern that the whole text matches
    kGrammar,     // `text`: EBNF of XGrammar with a rule `root`
    kGbnf,        // `text`: GBNF of llama.cpp with a rule `root`
    kComposed,    // `text`: Quire's own EBNF, which may name the rules of `values`
  };
  Kind kind = Kind::kJsonObject;
  std::string text = {};
  std::vector<std::string> choices = {};
  std::vector<ToolSchema> tools = {};  // for errors; no effect on the grammar
  std::vector<GrammarValue> values = {};
  std::vector<int32_t> token_ids = {};  // special tokens that a composed grammar names
};

// Limits on the cost of a client's grammar. The defaults are the server's.
struct GrammarLimits {
  size_t max_text_bytes = size_t{64} << 10;     // of `text`, or of all choices together
  size_t max_composed_bytes = size_t{1} << 20;  // of a composed grammar's texts together
  size_t max_json_depth = 32;
  size_t max_json_nodes = 10'000;  // values of any kind in a schema
  size_t max_choices = 1'000;
  size_t max_regex_bytes = size_t{8} << 10;  // also of each pattern in a schema
  size_t max_nesting = 64;                   // of groups, in patterns and EBNF
  int64_t max_repeat = 100'000;              // {n,m}, maxLength, maxItems …

  int64_t compile_work = 200'000'000;       // units of work_budget.h
  size_t compile_bytes = size_t{64} << 20;  // of rules, expressions and token masks, in all passes
  size_t cache_bytes = size_t{256} << 20;   // of cached grammars
  size_t shared_bytes = size_t{1} << 30;    // of all compiled grammars and all parses together

  // CPU time for token masks on the engine's thread: the burst of one sequence, and its allowance
  // for each further token.
  int64_t sequence_burst_ns = 100'000'000;
  int64_t sequence_token_ns = 2'000'000;
  size_t sequence_bytes = size_t{64} << 20;  // of one sequence's parse
  // The time of a mask or token that counts only against its sequence. Further time also counts
  // against a budget that all sequences share: half of the engine's time, with the shared burst.
  int64_t sequence_floor_ns = 250'000;
  int64_t shared_burst_ns = 250'000'000;
};

struct GrammarStats {
  int64_t num_compiled = 0;  // including refused ones
  int64_t num_hits = 0;      // compiled before, or waited for another call's compilation
  size_t cache_bytes = 0;
  size_t held_bytes = 0;  // of all compiled grammars, cached or in use, and of all parses
};

// One per engine. Thread-safe.
class GrammarCompiler {
 public:
  // Reads the vocabulary, which a thread of its own then sorts (0.1 s for 128 k tokens). The first
  // compilation waits for it. `eos_ids` are the tokens that end a sequence. If
  // none of them is a token of the tokenizer, every grammar is refused.
  GrammarCompiler(const Tokenizer& tokenizer, std::span<const int32_t> eos_ids,
                  const GrammarLimits& limits = {});
  ~GrammarCompiler();
  GrammarCompiler(const GrammarCompiler&) = delete;
  GrammarCompiler& operator=(const GrammarCompiler&) = delete;

  // May take as long as the limits allow, so it must not run on the engine's thread. Concurrent
  // calls for one grammar share one compilation. The message of invalid_argument names the fault in
  // the grammar.
  Result<ConstraintFactory> compile(const GrammarSpec& spec);

  // The constraint of a grammar that was already compiled or refused; never compiles or waits.
  std::optional<Result<ConstraintFactory>> find(const GrammarSpec& spec);

  // Ends running and later compilations with unavailable, which is not cached as a refusal.
  // Existing constraints keep working.
  void stop();

  GrammarStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
