// The keywords of JSON schemas: what each is about, and what of a schema they say.
#pragma once

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "quire/status.h"

namespace quire::grammar {

bool is_one_of(std::string_view name, const auto& names) {
  return std::ranges::find(names, name) != names.end();
}

// What a value within a schema is; kNames: an object of schemas under names of its own.
enum class Place { kSchema, kNames, kData };
// Of the member `key` of what stands at `place`.
Place member_place(Place place, std::string_view key);
// The names in a reference's path, "$defs" and "a" of "#/$defs/a". They point into `uri`.
std::vector<std::string_view> uri_parts(std::string_view uri);
// Whether a way through the document ("#/$defs/a") ends at a schema.
bool names_schema(std::string_view uri);

// The keywords that say something about numbers.
std::vector<std::string_view> number_keywords();

// Whether XGrammar holds strings to the format.
bool is_enforced_format(std::string_view name);
// One that says how a value is meant or shown, not which strings there are.
bool is_loose_format(std::string_view name);

bool has_type(simdjson::dom::element value, std::string_view type);
// Whether both are the same JSON value: 1 and 1.0 are, and so are objects in any order.
bool are_equal(simdjson::dom::element left, simdjson::dom::element right);
// A string, or an array of them; false: neither.
bool read_strings(simdjson::dom::element value, std::vector<std::string_view>& out);

// A schema that is an object. Of two members of one name, readers differ in which one holds:
// refused.
using Members = std::unordered_map<std::string_view, simdjson::dom::element>;
Result<Members> members_of(simdjson::dom::element value);

// The one keyword ($ref, const, enum, anyOf, oneOf or allOf) that says all of it, if there is one.
// Refuses what it would hide.
Result<std::string_view> head_of(const Members& members);
// The types that `members` and `outer` leave, each once; empty: any.
Result<std::vector<std::string_view>> types_of(const Members& members, std::string_view outer);
// Of a schema without "type": "object" or "array" where keywords such as "properties" or "items"
// show that one is meant; empty: any type. Strictly, a keyword then binds only values of the type
// it is about; XGrammar cannot enforce that, so any other keyword is refused.
Result<std::string_view> implied_type(const Members& members);
// An object's keys are held to one of these alone: properties, patternProperties, propertyNames.
Status check_object(const Members& members);

Status not_supported(std::string_view what);
Status beside(std::string_view keyword, std::string_view other);

}  // namespace quire::grammar
