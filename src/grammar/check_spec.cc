#include "grammar/check_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

// Keywords whose value is a count.
constexpr std::array<std::string_view, 8> kCountKeywords = {
    "minLength",   "maxLength",   "minItems",      "maxItems",
    "minContains", "maxContains", "minProperties", "maxProperties"};

// A keyword that XGrammar ignores without a warning, so that an output could violate it.
struct IgnoredKeyword {
  std::string_view name;
  std::string_view remedy;          // another way to express it
  bool has_effect_if_false = true;  // "contains": false, for example, forbids all arrays
};

constexpr std::string_view kWriteAnyOf = "write the allowed schemas as \"anyOf\"";
constexpr std::string_view kWriteBoth =
    "write an \"anyOf\" of the objects with and without the property";
constexpr std::string_view kWriteRef = "write a \"$ref\"";
constexpr std::array<IgnoredKeyword, 12> kIgnoredKeywords = {{
    {"not", kWriteAnyOf, false},
    {"if", kWriteAnyOf},
    {"dependencies", kWriteBoth},
    {"dependentRequired", kWriteBoth},
    {"dependentSchemas", kWriteBoth},
    {"uniqueItems",
     "leave it out (in pydantic: list instead of set) and drop duplicates from the output, or "
     "write "
     "an object with a boolean property per item",
     false},
    {"contains", "restrict all items by \"items\""},
    {"$dynamicRef", kWriteRef},
    {"$recursiveRef", kWriteRef},
    {"extends", "write one schema with all properties"},
    {"disallow", "list the allowed types as \"type\""},
    {"divisibleBy", "write \"multipleOf\""},
}};

class SchemaCheck {
 public:
  SchemaCheck(const GrammarLimits& limits, SchemaPath& path) : limits_(limits), path_(path) {}

  // Recursion is bounded, because the parser refuses JSON that nests deeper than max_json_depth.
  Status visit(element value, SchemaRole role) {
    if (++num_nodes_ > limits_.max_json_nodes) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema is too large; got more than {0} values, expected "
                      "at most {0}",
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
  Status check_keyword(std::string_view key, element schema, element member) const {
    if (is_one_of(key, kCountKeywords)) return check_count(key, member);
    // This schema allows no value. plain_schema() drops it from "anyOf" and "oneOf", writes false
    // for it as the schema of further properties or items, and refuses it elsewhere.
    if (key == "not" && allows_nothing(schema)) return {};
    if (key == "required" && member.is_bool() && member.get_bool().value_unsafe()) {
      return not_supported("\"required\" true",
                           "write the property's name into the \"required\" list of its object");
    }
    const auto* const ignored = std::ranges::find(kIgnoredKeywords, key, &IgnoredKeyword::name);
    if (ignored != kIgnoredKeywords.end()) {
      bool flag = true;
      const bool is_off = member.get_bool().get(flag) == simdjson::SUCCESS && !flag;
      if (is_off && !ignored->has_effect_if_false) return {};
      return not_supported(fmt::format("\"{}\"", key), ignored->remedy);
    }
    if (key == "$ref" && member.is_string()) return check_ref(member.get_string().value_unsafe());
    return {};
  }

  Status check_count(std::string_view key, element value) const {
    int64_t count = 0;
    if (value.get_int64().get(count) == simdjson::SUCCESS && count >= 0 &&
        count <= limits_.max_repeat) {
      return {};
    }
    return invalid_argument(
        fmt::format("[grammar] the JSON schema's \"{}\"; got {}, expected an integer from 0 to {}",
                    key, clipped(simdjson::minify(value)), limits_.max_repeat));
  }

  static Status check_ref(std::string_view uri) {
    if (uri != "#" && !uri.starts_with("#/")) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has a \"$ref\" to another document; got \"{}\", "
                      "expected \"#\" or \"#/…\"",
                      clipped(uri)));
    }
    // XGrammar looks up the names of a reference as they are written, without decoding escapes.
    if (uri.find('~') != std::string_view::npos) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has a \"$ref\" with an escape (~0, ~1), which is "
                      "not supported; got \"{}\", expected a schema whose name has neither '/' nor "
                      "'~'",
                      clipped(uri)));
    }
    if (uri.find('%') != std::string_view::npos) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has a \"$ref\" with an escape (%XX), which is not "
                      "supported; got \"{}\", expected the name's own characters, without '%'",
                      clipped(uri)));
    }
    return {};
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
      fmt::format("[grammar] the tools' schemas and patterns, and the grammar of their calls, are "
                  "too long; got {} bytes, expected at most {}",
                  num_bytes, limits.max_composed_bytes));
}

}  // namespace

Status check_schema(element root, const GrammarLimits& limits, SchemaPath& path) {
  if (!root.is_object() && !root.is_bool()) {
    return invalid_argument("[grammar] the JSON schema is not an object, true or false");
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
