// Restrictions on the text of an answer, as plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace quire {

struct GrammarSpec {
  enum class Kind {
    kJsonObject,  // any JSON object
    kJsonSchema,  // `text`: the schema
    kChoice,      // one of `choices`, literally
    kRegex,       // `text`: a pattern that the whole answer matches
    kGrammar,     // `text`: EBNF with a rule `root`
  };
  Kind kind = Kind::kJsonObject;
  std::string text = {};
  std::vector<std::string> choices = {};
};

// Limits on the cost of a client's grammar. The defaults are the server's.
struct GrammarLimits {
  size_t max_text_bytes = size_t{64} << 10;  // of `text`, or of all choices together
  size_t max_json_depth = 32;
  size_t max_json_nodes = 10'000;  // values of any kind in a schema
  size_t max_choices = 1'000;
  size_t max_regex_bytes = size_t{8} << 10;  // also of each pattern in a schema
  size_t max_nesting = 64;                   // of groups, in patterns and EBNF
  int64_t max_repeat = 100'000;              // {n,m}, maxLength, maxItems …

  int64_t compile_cpu_ns = 2'000'000'000;
  size_t compile_bytes = size_t{64} << 20;  // of rules, expressions and token masks, in all passes
  size_t cache_bytes = size_t{256} << 20;   // of cached grammars
  size_t shared_bytes = size_t{1} << 30;    // of all compiled grammars and all parses together

  // CPU time for token masks on the engine's thread: the burst of one answer, and its allowance for
  // each further token.
  int64_t answer_burst_ns = 100'000'000;
  int64_t answer_token_ns = 2'000'000;
  size_t answer_bytes = size_t{64} << 20;  // of one answer's parse
  // The part of a mask's or token's time that counts only against the answer itself. The rest also
  // counts against a budget shared by all answers: half of the engine's time, with this burst.
  int64_t answer_floor_ns = 250'000;
  int64_t shared_burst_ns = 250'000'000;
};

}  // namespace quire
