// Refuses specs that would crash or stall XGrammar, or that XGrammar would misread, and rewrites
// all other specs into forms that XGrammar reads correctly.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "grammar/grammar_compiler.h"
#include "grammar/schema_keywords.h"
#include "quire/status.h"

namespace quire::grammar {

// Checks the sizes and the encoding of a spec's texts, in time linear in them. Returns
// invalid_argument with the reason.
Status check_spec(const GrammarSpec& spec, const GrammarLimits& limits);

// Returns the same JSON schema in the forms that XGrammar enforces. invalid_argument names the
// keyword that XGrammar would ignore, its place, and the tool of `tools` that it belongs to. The
// result is stricter than the schema in some ways (docs/serving.md#structured-output lists them): a
// schema that has keywords of objects or arrays but no "type" allows only objects or arrays, a
// pattern matches the whole string, and a format with a maximum length may allow fewer texts. Its
// size is linear in the size of `json`, and at most kMaxPlainGrowth * limits.max_text_bytes. The
// work counts against the thread's WorkBudget.
inline constexpr size_t kMaxPlainGrowth = 4;
Result<std::string> plain_schema(std::string_view json, const GrammarLimits& limits,
                                 std::span<const ToolSchema> tools = {});

// A step of plain_schema(): refuses keywords that XGrammar would ignore wherever they are, and
// bounds the number of values and the repeats. On failure, `path` leads to the place.
Status check_schema(simdjson::dom::element root, const GrammarLimits& limits, SchemaPath& path);

// A regex in the part of ECMAScript's syntax that XGrammar reads correctly.
struct RegexText {
  static constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();

  std::string text;
  // Bounds of the lengths of matching texts, in characters. They may be loose.
  int64_t min_length = 0;
  int64_t max_length = 0;
  // Set if the regex only repeats this class or character: [a-z] for ^[a-z]+$.
  std::optional<std::string> repeated;
};
// kText: the regex is matched with the output. kJsonString: it is matched with the text between the
// quotes of a JSON string, where `"` is \", so that the value of the string matches `pattern`.
enum class RegexForm { kText, kJsonString };
// Errors are invalid_argument. `what` names the text: "the regex", "a pattern of the JSON schema".
Result<RegexText> plain_regex(std::string_view what, std::string_view pattern,
                              const GrammarLimits& limits, RegexForm form = RegexForm::kText);

// A step of plain_schema(): the keywords that restrict strings, in forms that XGrammar enforces.
Result<std::vector<KeywordField>> string_fields(const Members& members,
                                                const GrammarLimits& limits);

// kEbnf: XGrammar's, without its functions and attributes. kGbnf: llama.cpp's, without tokens.
enum class GrammarDialect { kEbnf, kGbnf };
// Returns the grammar in XGrammar's EBNF. Errors are invalid_argument, with the line and the
// column.
Result<std::string> plain_grammar(std::string_view text, GrammarDialect dialect,
                                  const GrammarLimits& limits);

// Returns the EBNF of a composed grammar.
Result<std::string> compose_grammar(const GrammarSpec& spec, const GrammarLimits& limits);

}  // namespace quire::grammar
