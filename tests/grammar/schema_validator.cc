#include "grammar/schema_validator.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"

namespace quire::testing {
namespace {

using simdjson::dom::element;

bool has_type(element value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  return type == "integer" && value.is_number() && std::nearbyint(double(value)) == double(value);
}

bool is_same(element value, element wanted) {
  if (value.is_number() && wanted.is_number()) return double(value) == double(wanted);
  return std::string(simdjson::minify(value)) == std::string(simdjson::minify(wanted));
}

int64_t num_characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

class Validator {
 public:
  explicit Validator(element root) : root_(root) {}

  std::string check(element value, element schema) const {
    if (schema.is_bool()) return bool(schema) ? "" : "nothing is allowed here";
    std::string_view ref;
    if (schema["$ref"].get(ref) == simdjson::SUCCESS) {
      return check(value, ref == "#" ? root_ : element(root_.at_pointer(ref.substr(1))));
    }
    for (const auto& part : {check_any(value, schema), check_object(value, schema),
                             check_array(value, schema), check_scalar(value, schema)}) {
      if (!part.empty()) return part;
    }
    return "";
  }

 private:
  std::string check_any(element value, element schema) const {
    const std::string text = simdjson::minify(value);
    element part;
    if (schema["type"].get(part) == simdjson::SUCCESS) {
      bool found = part.is_string() && has_type(value, std::string_view(part));
      if (part.is_array()) {
        for (const element type : part) found |= has_type(value, std::string_view(type));
      }
      if (!found) return "wrong type: " + text;
    }
    if (schema["const"].get(part) == simdjson::SUCCESS && !is_same(value, part)) {
      return "not the constant: " + text;
    }
    for (const std::string_view keyword : {"enum", "anyOf", "oneOf", "allOf"}) {
      if (schema[keyword].get(part) != simdjson::SUCCESS) continue;
      int64_t num_met = 0;
      for (const element option : part) {
        num_met += keyword == "enum" ? is_same(value, option) : check(value, option).empty();
      }
      const auto num_options = static_cast<int64_t>(part.get_array().value().size());
      const bool is_met = keyword == "oneOf"   ? num_met == 1
                          : keyword == "allOf" ? num_met == num_options
                                               : num_met > 0;
      if (!is_met) return "wrong by " + std::string(keyword) + ": " + text;
    }
    return "";
  }

  std::string check_object(element value, element schema) const {
    if (!value.is_object()) return "";
    element part;
    if (schema["required"].get(part) == simdjson::SUCCESS) {
      for (const element name : part) {
        if (value[std::string_view(name)].error()) return "a property is missing";
      }
    }
    const simdjson::dom::object members = value.get_object().value();
    for (const auto [key, member] : members) {
      element property;
      if (schema["properties"][key].get(property) == simdjson::SUCCESS ||
          schema["additionalProperties"].get(property) == simdjson::SUCCESS) {
        const std::string error = check(member, property);
        if (!error.empty()) return std::string(key) + ": " + error;
      }
    }
    return "";
  }

  std::string check_array(element value, element schema) const {
    if (!value.is_array()) return "";
    const auto size = static_cast<int64_t>(value.get_array().value().size());
    element part;
    if (schema["minItems"].get(part) == simdjson::SUCCESS && size < int64_t(part)) return "few";
    if (schema["maxItems"].get(part) == simdjson::SUCCESS && size > int64_t(part)) return "many";
    if (schema["items"].get(part) != simdjson::SUCCESS) return "";
    for (const element item : value) {
      const std::string error = check(item, part);
      if (!error.empty()) return error;
    }
    return "";
  }

  std::string check_scalar(element value, element schema) const {
    element part;
    if (value.is_string()) {
      const std::string_view text(value);
      const int64_t length = num_characters(text);
      if (schema["minLength"].get(part) == simdjson::SUCCESS && length < int64_t(part)) {
        return "too short";
      }
      if (schema["maxLength"].get(part) == simdjson::SUCCESS && length > int64_t(part)) {
        return "too long";
      }
      if (schema["pattern"].get(part) == simdjson::SUCCESS &&
          !matches_regex(text, std::string_view(part))) {
        return "does not match the pattern: " + std::string(text);
      }
    } else if (value.is_number()) {
      if (schema["minimum"].get(part) == simdjson::SUCCESS && double(value) < double(part)) {
        return "too small";
      }
      if (schema["maximum"].get(part) == simdjson::SUCCESS && double(value) > double(part)) {
        return "too large";
      }
    }
    return "";
  }

  element root_;
};

// simdjson refuses numbers that a double cannot hold, although JSON allows them. Therefore
// exponents are cut after their first digit.
std::string with_small_exponents(std::string_view json) {
  std::string out;
  bool in_string = false;
  int num_exponent_digits = -1;  // not within an exponent
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') in_string = !in_string;
    const bool is_digit = c >= '0' && c <= '9';
    if (!in_string && (c == 'e' || c == 'E') && i > 0 && json[i - 1] >= '0' && json[i - 1] <= '9') {
      num_exponent_digits = 0;
    } else if (num_exponent_digits >= 0 && !is_digit && c != '+' && c != '-') {
      num_exponent_digits = -1;
    }
    if (num_exponent_digits >= 0 && is_digit && ++num_exponent_digits > 1) continue;
    out += c;
    if (in_string && c == '\\' && i + 1 < json.size()) out += json[++i];
  }
  return out;
}

}  // namespace

std::string validate_json(std::string_view json, std::string_view schema) {
  const auto value = JsonDocument::parse(with_small_exponents(json), "answer");
  if (!value.ok()) return value.status().message();
  const auto rules = JsonDocument::parse(schema, "schema");
  if (!rules.ok()) return rules.status().message();
  return Validator(rules->root()).check(value->root(), rules->root());
}

bool matches_regex(std::string_view text, std::string_view pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_ALT_BSUX | PCRE2_DOTALL | PCRE2_ANCHORED |
                                       PCRE2_ENDANCHORED | PCRE2_DOLLAR_ENDONLY,
                                   &error, &at, nullptr);
  EXPECT_NE(code, nullptr) << pattern << " at " << at;
  if (code == nullptr) return false;
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  const int result = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                 match, nullptr);
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return result >= 0;
}

}  // namespace quire::testing
