// JSON schema, as far as the tests use it, written from the specification and nothing else:
// type, enum, const, properties, required, additionalProperties, items, min/maxItems,
// min/maxLength, minimum, maximum, pattern, anyOf, oneOf, allOf, local $ref.
#pragma once

#include <string>
#include <string_view>

namespace quire::testing {

// Returns an empty string if `json` is valid, otherwise the first violation.
std::string validate_json(std::string_view json, std::string_view schema);

// The pattern matches the whole text, by PCRE2. `.` takes line ends too, as XGrammar's does.
bool matches_regex(std::string_view text, std::string_view pattern);

}  // namespace quire::testing
