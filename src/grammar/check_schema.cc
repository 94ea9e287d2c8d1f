// JSON schemas: how deep and how large they are, the patterns and the counts in them.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "grammar/check_spec.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

constexpr std::array<std::string_view, 8> kCounts = {"minLength",     "maxLength",    "minItems",
                                                     "maxItems",      "minContains",  "maxContains",
                                                     "minProperties", "maxProperties"};

// Keywords that XGrammar passes over without a word; an answer could then break them.
constexpr std::array<std::string_view, 12> kNotEnforced = {
    "not",         "if",         "dependencies", "dependentRequired", "dependentSchemas",
    "uniqueItems", "contains",   "$dynamicRef",  "$recursiveRef",     "extends",
    "disallow",    "divisibleBy"};

class SchemaCheck {
 public:
  explicit SchemaCheck(const GrammarLimits& limits) : limits_(limits) {}

  // Recursion is bounded: the parser has refused what nests deeper than max_json_depth. `is_names`:
  // the members are the schema's own names (of properties, of definitions), not keywords.
  Status visit(element value, bool is_names, bool is_data) {
    if (++num_nodes_ > limits_.max_json_nodes) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema is too large; got more than {} values",
                      limits_.max_json_nodes));
    }
    if (value.is_array()) {
      const simdjson::dom::array items = value.get_array().value_unsafe();
      for (const element item : items) {
        QUIRE_RETURN_IF_ERROR(visit(item, false, is_data));
      }
    } else if (value.is_object()) {
      const simdjson::dom::object members = value.get_object().value_unsafe();
      for (const auto [key, member] : members) {
        QUIRE_RETURN_IF_ERROR(visit_member(key, member, is_names, is_data));
      }
    }
    return {};
  }

 private:
  Status visit_member(std::string_view key, element member, bool is_names, bool is_data) {
    if (!is_names && !is_data) QUIRE_RETURN_IF_ERROR(check_keyword(key, member));
    const bool names = !is_names && (key == "properties" || key == "patternProperties" ||
                                     key == "$defs" || key == "definitions");
    const bool data =
        is_data || (!is_names && (key == "enum" || key == "const" || key == "default" ||
                                  key == "examples" || key == "example"));
    if (names && key == "patternProperties" && member.is_object()) {
      const simdjson::dom::object patterns = member.get_object().value_unsafe();
      for (const auto [pattern, unused] : patterns) {
        QUIRE_RETURN_IF_ERROR(check_regex("a pattern of the JSON schema", pattern, limits_));
      }
    }
    return visit(member, names, data);
  }

  Status check_keyword(std::string_view key, element value) {
    if (key == "pattern" && value.is_string()) {
      return check_regex("a pattern of the JSON schema", value.get_string().value_unsafe(),
                         limits_);
    }
    if (std::ranges::find(kCounts, key) != kCounts.end()) return check_count(key, value);
    if (std::ranges::find(kNotEnforced, key) != kNotEnforced.end()) {
      bool flag = true;
      if (value.get_bool().get(flag) == simdjson::SUCCESS && !flag) return {};
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has \"{}\", which is not supported", key));
    }
    if (key == "$ref" && value.is_string()) return check_ref(value.get_string().value_unsafe());
    return {};
  }

  Status check_count(std::string_view key, element value) {
    int64_t count = 0;
    if (value.get_int64().get(count) == simdjson::SUCCESS && count >= 0 &&
        count <= limits_.max_repeat) {
      return {};
    }
    return invalid_argument(
        fmt::format("[grammar] the JSON schema's \"{}\" is no whole number of 0 to {}", key,
                    limits_.max_repeat));
  }

  static Status check_ref(std::string_view uri) {
    if (uri == "#" || uri.starts_with("#/")) return {};
    return invalid_argument(
        "[grammar] the JSON schema has a \"$ref\" to outside; expected \"#\" or \"#/…\"");
  }

  const GrammarLimits& limits_;
  size_t num_nodes_ = 0;
};

}  // namespace

Status check_schema(std::string_view json, const GrammarLimits& limits) {
  const JsonLimits json_limits = {.max_bytes = limits.max_text_bytes,
                                  .max_depth = limits.max_json_depth};
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, "JSON schema", json_limits));
  if (!document.root().is_object() && !document.root().is_bool()) {
    return invalid_argument("[grammar] the JSON schema is no object");
  }
  return SchemaCheck(limits).visit(document.root(), false, false);
}

}  // namespace quire::grammar
