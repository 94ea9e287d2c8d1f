#include "grammar/check_spec.h"

#include <fmt/format.h>

#include <array>

#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

constexpr std::array<std::string_view, 8> kCounts = {"minLength",     "maxLength",    "minItems",
                                                     "maxItems",      "minContains",  "maxContains",
                                                     "minProperties", "maxProperties"};

// Keywords that XGrammar ignores without a warning, so that an output could violate them.
constexpr std::array<std::string_view, 12> kNotEnforced = {
    "not",         "if",         "dependencies", "dependentRequired", "dependentSchemas",
    "uniqueItems", "contains",   "$dynamicRef",  "$recursiveRef",     "extends",
    "disallow",    "divisibleBy"};

// Keywords of kNotEnforced that have no effect if `false`. In contrast, "contains": false forbids
// all arrays.
constexpr std::array<std::string_view, 2> kIgnoredIfFalse = {"not", "uniqueItems"};

// Returns another way to express a keyword of kNotEnforced; empty: no way is known.
std::string_view way_around(std::string_view keyword) {
  if (keyword == "uniqueItems") {
    return "leave it out (in Python, a list instead of a set) and drop duplicates from the answer, "
           "or ask for an object with a boolean property for each item";
  }
  if (keyword == "if" || keyword == "not") return "write the allowed schemas as \"anyOf\"";
  if (keyword == "dependentRequired" || keyword == "dependentSchemas" ||
      keyword == "dependencies") {
    return "write an \"anyOf\" of the objects with and without the property";
  }
  if (keyword == "contains") return "write the schema of all \"items\"";
  if (keyword == "extends") return "write one schema with all properties";
  if (keyword == "divisibleBy") return "write \"multipleOf\"";
  if (keyword == "disallow") return "write the other types as the \"type\"";
  if (keyword == "$dynamicRef" || keyword == "$recursiveRef") return "write a \"$ref\"";
  return "";
}

class SchemaCheck {
 public:
  SchemaCheck(const GrammarLimits& limits, SchemaPath& path) : limits_(limits), path_(path) {}

  // Recursion is bounded, because the parser refuses JSON that nests deeper than max_json_depth.
  Status visit(element value, SchemaRole role) {
    if (++num_nodes_ > limits_.max_json_nodes) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema is too large; got more than {} values",
                      limits_.max_json_nodes));
    }
    if (value.is_array()) {
      const simdjson::dom::array items = value.get_array().value_unsafe();
      const SchemaRole item_role = role == SchemaRole::kNames ? SchemaRole::kSchema : role;
      size_t idx = 0;
      for (const element item : items) {
        QUIRE_RETURN_IF_ERROR(
            at_member(path_, std::to_string(idx++), [&] { return visit(item, item_role); }));
      }
    } else if (value.is_object()) {
      const simdjson::dom::object members = value.get_object().value_unsafe();
      for (const simdjson::dom::key_value_pair field : members) {
        const std::string_view key = field.key;
        const simdjson::dom::element member = field.value;
        if (role == SchemaRole::kSchema) QUIRE_RETURN_IF_ERROR(check_keyword(key, value, member));
        QUIRE_RETURN_IF_ERROR(
            at_member(path_, key, [&] { return visit(member, member_role(role, key)); }));
      }
    }
    return {};
  }

 private:
  Status check_keyword(std::string_view key, element schema, element value) const {
    if (is_one_of(key, kCounts)) return check_count(key, value);
    // plain_schema() drops these from "anyOf" and refuses them elsewhere.
    if (key == "not" && allows_nothing(schema)) return {};
    if (key == "required" && value.is_bool() && value.get_bool().value_unsafe()) {
      return not_supported("\"required\" true",
                           "write the property's name into the \"required\" list of its object");
    }
    if (is_one_of(key, kNotEnforced)) {
      bool flag = true;
      if (is_one_of(key, kIgnoredIfFalse) && value.get_bool().get(flag) == simdjson::SUCCESS &&
          !flag) {
        return {};
      }
      return not_supported(fmt::format("\"{}\"", key), way_around(key));
    }
    if (key == "$ref" && value.is_string()) return check_ref(value.get_string().value_unsafe());
    return {};
  }

  Status check_count(std::string_view key, element value) const {
    int64_t count = 0;
    if (value.get_int64().get(count) == simdjson::SUCCESS && count >= 0 &&
        count <= limits_.max_repeat) {
      return {};
    }
    return invalid_argument(
        fmt::format("[grammar] the JSON schema's \"{}\" must be an integer from 0 to {}", key,
                    limits_.max_repeat));
  }

  static Status check_ref(std::string_view uri) {
    if (uri.find('~') != std::string_view::npos) {  // XGrammar does not decode names
      return invalid_argument(
          "[grammar] the JSON schema has a \"$ref\" with an escape (~0, ~1), which is not "
          "supported; expected a name without '/' and '~'");
    }
    if (uri.find('%') != std::string_view::npos) {
      return invalid_argument(
          "[grammar] the JSON schema has a \"$ref\" with an escape (%XX), which is not supported; "
          "expected the name's own characters, without '%'");
    }
    if (uri == "#" || uri.starts_with("#/")) return {};
    return invalid_argument(
        "[grammar] the JSON schema has a \"$ref\" to another document; expected \"#\" or \"#/…\"");
  }

  const GrammarLimits& limits_;
  SchemaPath& path_;
  size_t num_nodes_ = 0;
};

Status check_text(std::string_view what, std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return invalid_argument(
        fmt::format("[grammar] {} is too long; got {} bytes, expected at most {}", what,
                    text.size(), max_bytes));
  }
  if (text.find('\0') != std::string_view::npos || !is_valid_utf8(text)) {
    return invalid_argument(
        fmt::format("[grammar] {} is not text; expected UTF-8 without null characters", what));
  }
  return {};
}

Status check_choices(const GrammarSpec& spec, const GrammarLimits& limits) {
  if (spec.choices.empty() || spec.choices.size() > limits.max_choices) {
    return invalid_argument(fmt::format("[grammar] got {} choices, expected 1 to {}",
                                        spec.choices.size(), limits.max_choices));
  }
  size_t num_bytes = 0;
  for (const std::string& choice : spec.choices) {
    QUIRE_RETURN_IF_ERROR(check_text("a choice", choice, limits.max_text_bytes));
    num_bytes += choice.size();
  }
  if (num_bytes > limits.max_text_bytes) {
    return invalid_argument(
        fmt::format("[grammar] the choices are too long; got {} bytes, expected at most {}",
                    num_bytes, limits.max_text_bytes));
  }
  return {};
}

Status check_composed(const GrammarSpec& spec, const GrammarLimits& limits) {
  size_t num_bytes = spec.text.size();
  for (const GrammarValue& value : spec.values) {
    const bool is_schema = value.kind != GrammarValue::Kind::kRegex;
    QUIRE_RETURN_IF_ERROR(check_text(is_schema ? "the JSON schema" : "the regex", value.text,
                                     is_schema ? limits.max_text_bytes : limits.max_regex_bytes));
    num_bytes += value.text.size();
  }
  if (num_bytes <= limits.max_composed_bytes) return {};
  return invalid_argument(
      fmt::format("[grammar] the schemas of the tools are too long; their grammar has {} bytes, "
                  "expected at most {}",
                  num_bytes, limits.max_composed_bytes));
}

}  // namespace

Status check_schema(element root, const GrammarLimits& limits, SchemaPath& path) {
  if (!root.is_object() && !root.is_bool()) {
    return invalid_argument("[grammar] the JSON schema is not an object");
  }
  return SchemaCheck(limits, path).visit(root, SchemaRole::kSchema);
}

Status check_spec(const GrammarSpec& spec, const GrammarLimits& limits) {
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonObject:
      return {};
    case GrammarSpec::Kind::kChoice:
      return check_choices(spec, limits);
    case GrammarSpec::Kind::kJsonSchema:
      return check_text("the JSON schema", spec.text, limits.max_text_bytes);
    case GrammarSpec::Kind::kRegex:
      return check_text("the regex", spec.text, limits.max_regex_bytes);
    case GrammarSpec::Kind::kGrammar:
    case GrammarSpec::Kind::kGbnf:
      return check_text("the grammar", spec.text, limits.max_text_bytes);
    case GrammarSpec::Kind::kComposed:
      return check_composed(spec, limits);
  }
  return internal_error("[grammar] unknown kind of grammar");
}

}  // namespace quire::grammar
