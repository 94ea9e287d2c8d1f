// The keywords of JSON schemas: the values that each restricts, and how they combine.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "quire/status.h"

namespace quire::grammar {

bool is_one_of(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

// The role of a value within a schema. kNames: an object whose members are schemas, under any
// names.
enum class SchemaRole { kSchema, kNames, kData };
// The role of member `key` of an object whose role is `role`.
SchemaRole member_role(SchemaRole role, std::string_view key);
// The names in a reference's path: "$defs" and "a" of "#/$defs/a". They point into `uri`.
std::vector<std::string_view> uri_parts(std::string_view uri);
// Returns whether a reference such as "#/$defs/a" names a schema, by the roles on its path.
bool names_schema(std::string_view uri);

// A format of strings that is enforced.
struct StringFormat {
  std::string_view name;
  int64_t min_length;  // in characters; the bounds may be loose
  int64_t max_length;  // INT64_MAX: unbounded
};
// Returns the format that XGrammar enforces, or null.
const StringFormat* find_format(std::string_view name);
// Returns whether the format only describes the meaning or display of a value, without restricting
// it.
bool is_loose_format(std::string_view name);
// Returns a regex that matches only texts of the format with at most `max_length` characters, but
// not all of them; empty: no such regex.
std::string bounded_format(std::string_view name, int64_t max_length);

// If zod or pydantic writes this pattern with lookaheads or inner anchors, returns a pattern
// without them that matches the same texts. Returns any other pattern unchanged.
std::string_view plain_form(std::string_view pattern);
// Returns whether zod writes this pattern beside this format. The pattern is then the format's
// definition.
bool is_generators_pattern(std::string_view format, std::string_view pattern);

bool has_type(simdjson::dom::element value, std::string_view type);
// Returns whether a schema allows no value: false, or {"not": {}} as zod 3 writes it.
bool allows_nothing(simdjson::dom::element schema);
// Returns whether both are the same JSON value. 1 equals 1.0, and the order of members is ignored.
bool are_equal(simdjson::dom::element left, simdjson::dom::element right);
// Reads a string or an array of strings; returns false for any other value.
bool read_strings(simdjson::dom::element value, std::vector<std::string_view>& out);

// Returns the members of a schema that is an object. Fails if a name occurs twice, because JSON
// readers differ in which of the two members they use.
using Members = std::unordered_map<std::string_view, simdjson::dom::element>;
Result<Members> members_of(simdjson::dom::element value);

// The keyword ($ref, const, enum, anyOf, oneOf or allOf) that replaces the rest of the schema, if
// any. Fails if other keywords beside it would be ignored.
Result<std::string_view> replacing_keyword(const Members& members);
// Fails if "nullable" of OpenAPI 3.0 is true where OpenAPI and its generators differ in its
// meaning.
Status check_nullable(const Members& members);
// The types that both `members` and `outer` allow, without duplicates; empty: any type. A schema
// that is "nullable" also allows null.
Result<std::vector<std::string_view>> types_of(const Members& members, std::string_view outer);
// The type of a schema without "type": "object" or "array" if it has keywords such as "properties"
// or "items"; empty: any type. In JSON Schema, such a keyword restricts only values of its own
// type. XGrammar cannot enforce that, so keywords of other types are refused.
Result<std::string_view> implied_type(const Members& members);
// Fails on combinations of properties, patternProperties and propertyNames (and keywords that act
// on them) of which XGrammar enforces only one.
Status check_object(const Members& members);

// A keyword and its value, as XGrammar reads them.
struct KeywordField {
  std::string_view keyword;
  std::string json;
};
// The keywords that restrict numbers, with values that XGrammar enforces exactly. For integers,
// bounds are rounded inward to integers.
Result<std::vector<KeywordField>> number_fields(const Members& members, bool is_integer);

// The text as JSON, in quotes.
std::string json_string(std::string_view text);
// The value of a count such as minItems, whose type check_schema() has checked; nullopt: the
// keyword is absent.
std::optional<int64_t> count_of(const Members& members, std::string_view keyword);
// Fails if the two counts leave no value.
Status check_counts(const Members& members, std::string_view low, std::string_view high);

// Returns the text as a string of EBNF. Quotes, backslashes and control characters become \u00XX.
std::string ebnf_string(std::string_view text);

// A place in a schema, for errors: the names on the path from the root.
using SchemaPath = std::vector<std::string>;
// Runs `check`, which descends into the member `name` of the schema at `path`. If it fails, `path`
// stays at the place of the failure.
Status at_member(SchemaPath& path, std::string_view name, const auto& check) {
  path.emplace_back(name);
  Status status = check();
  if (status.ok()) path.pop_back();
  return status;
}

// Returns the error `the JSON schema has WHAT, which is not supported; REMEDY`.
Status not_supported(std::string_view what, std::string_view remedy = {});
Status unsupported_beside(std::string_view keyword, std::string_view other);
// Returns the error for two bounds that leave no value: "minItems" 3 and "maxItems" 2.
Status empty_range(std::string_view low, std::string_view low_value, std::string_view high,
                   std::string_view high_value);

}  // namespace quire::grammar
