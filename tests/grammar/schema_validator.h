// Validates the part of JSON schema that the tests use, written from the specification alone: type,
// enum, const, properties, required, additionalProperties, items, min/maxItems, min/maxLength,
// minimum, maximum, pattern, anyOf, oneOf, allOf, local $ref.
#pragma once

#include <string>
#include <string_view>

namespace quire::testing {

// Returns an empty string if `json` is valid, otherwise the first violation.
std::string validate_json(std::string_view json, std::string_view schema);

// Matches the pattern against the whole text, by PCRE2. `.` also matches line ends, as in XGrammar.
bool matches_regex(std::string_view text, std::string_view pattern);

}  // namespace quire::testing
