// The grammar of a property's value that a format writes as plain text, without quotes.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/call_grammar/grammar_rules.h"
#include "server/tools/response_template.h"

namespace quire::server {

struct Property {
  std::string_view name;
  std::optional<simdjson::dom::element> schema;  // nullopt: any value
  bool is_required = false;
};

// How a field's values end, and the white space around them.
struct TextNotation {
  std::vector<std::string> barred = {};  // texts that a value cannot contain
  Trim trim = Trim::kNone;
  bool is_typed = false;  // each tag states whether its value is a string
};

// One form of a value: plain text or JSON.
struct TextValue {
  bool is_text = false;
  std::string ebnf = {};
};

// Returns all forms of the property's value; `root` is the schema that has the property.
Result<std::vector<TextValue>> text_values(GrammarRules& rules, const TextNotation& notation,
                                           const Tool& tool, const Property& property,
                                           const simdjson::dom::element& root);

}  // namespace quire::server
