#include "grammar/schema_keywords.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json_writer.h"
#include "base/text.h"
#include "grammar/work_budget.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

enum class Group { kObject, kArray, kString, kNumber };

// The group of values that each keyword restricts. All other keywords are annotations.
constexpr std::array<std::pair<std::string_view, Group>, 23> kKeywords = {{
    {"properties", Group::kObject},
    {"required", Group::kObject},
    {"additionalProperties", Group::kObject},
    {"unevaluatedProperties", Group::kObject},
    {"patternProperties", Group::kObject},
    {"propertyNames", Group::kObject},
    {"minProperties", Group::kObject},
    {"maxProperties", Group::kObject},
    {"items", Group::kArray},
    {"additionalItems", Group::kArray},
    {"prefixItems", Group::kArray},
    {"unevaluatedItems", Group::kArray},
    {"minItems", Group::kArray},
    {"maxItems", Group::kArray},
    {"minLength", Group::kString},
    {"maxLength", Group::kString},
    {"pattern", Group::kString},
    {"format", Group::kString},
    {"minimum", Group::kNumber},
    {"maximum", Group::kNumber},
    {"exclusiveMinimum", Group::kNumber},
    {"exclusiveMaximum", Group::kNumber},
    {"multipleOf", Group::kNumber},
}};

// Keywords that replace the rest of a schema. Only one of them may occur, except const with enum.
constexpr std::array<std::string_view, 6> kReplacingKeywords = {"$ref",  "const", "enum",
                                                                "anyOf", "oneOf", "allOf"};
constexpr std::array<std::string_view, 4> kNames = {"properties", "patternProperties", "$defs",
                                                    "definitions"};
constexpr std::array<std::string_view, 5> kData = {"enum", "const", "default", "examples",
                                                   "example"};
constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};
constexpr int64_t kNoMost = std::numeric_limits<int64_t>::max();
// The patterns are XGrammar's (patches/xgrammar/patterns.patch changes some).
constexpr std::array<StringFormat, 13> kFormats = {{{"email", 3, kNoMost},
                                                    {"date", 10, 10},
                                                    {"time", 9, 24},
                                                    {"date-time", 20, 35},
                                                    {"duration", 3, kNoMost},
                                                    {"ipv4", 7, 15},
                                                    {"ipv6", 2, 39},
                                                    {"hostname", 1, kNoMost},
                                                    {"uuid", 36, 36},
                                                    {"uri", 2, kNoMost},
                                                    {"uri-reference", 0, kNoMost},
                                                    {"uri-template", 0, kNoMost},
                                                    {"json-pointer", 0, kNoMost}}};
constexpr std::array<std::string_view, 5> kLooseFormats = {"password", "binary", "path",
                                                           "file-path", "directory-path"};

// A long double holds each int64_t, uint64_t and double exactly.
static_assert(std::numeric_limits<long double>::digits >= 64);
long double number_of(element value) {
  if (value.is_int64()) return static_cast<long double>(value.get_int64().value_unsafe());
  if (value.is_uint64()) return static_cast<long double>(value.get_uint64().value_unsafe());
  return value.get_double().value_unsafe();
}

bool are_equal_arrays(simdjson::dom::array left, simdjson::dom::array right) {
  if (left.size() != right.size()) return false;
  return std::equal(left.begin(), left.end(), right.begin(), are_equal);
}

bool are_equal_objects(simdjson::dom::object left, simdjson::dom::object right) {
  if (left.size() != right.size()) return false;
  for (const auto [key, value] : left) {
    charge_work();
    element other;
    if (right.at_key(key).get(other) || !are_equal(value, other)) return false;
  }
  return true;
}

bool is_restricted_by(std::string_view type, Group group) {
  switch (group) {
    case Group::kObject:
      return type == "object";
    case Group::kArray:
      return type == "array";
    case Group::kString:
      return type == "string";
    case Group::kNumber:
      return type == "number" || type == "integer";
  }
  return false;
}

}  // namespace

Status not_supported(std::string_view what, std::string_view remedy) {
  return invalid_argument(
      fmt::format("[grammar] the JSON schema has {}, which is not supported{}{}", what,
                  remedy.empty() ? "" : "; ", remedy));
}

Status empty_range(std::string_view low, std::string_view low_value, std::string_view high,
                   std::string_view high_value) {
  return invalid_argument(
      fmt::format("[grammar] the JSON schema has \"{}\" {} and \"{}\" {}, which leave no value; "
                  "expected bounds with a value between them",
                  low, low_value, high, high_value));
}

Status unsupported_beside(std::string_view keyword, std::string_view other) {
  return not_supported(fmt::format("\"{}\" beside \"{}\"", keyword.substr(0, 64), other));
}

SchemaRole member_role(SchemaRole role, std::string_view key) {
  if (role == SchemaRole::kData) return SchemaRole::kData;
  if (role == SchemaRole::kNames) return SchemaRole::kSchema;
  if (is_one_of(key, kNames)) return SchemaRole::kNames;
  return is_one_of(key, kData) ? SchemaRole::kData : SchemaRole::kSchema;
}

std::vector<std::string_view> uri_parts(std::string_view uri) {
  std::vector<std::string_view> parts;
  for (size_t begin = uri.find('/'); begin != std::string_view::npos;) {
    const size_t end = uri.find('/', begin + 1);
    const std::string_view part = uri.substr(begin + 1, end - begin - 1);
    if (!part.empty()) parts.push_back(part);
    begin = end;
  }
  return parts;
}

bool names_schema(std::string_view uri) {
  SchemaRole role = SchemaRole::kSchema;
  for (const std::string_view part : uri_parts(uri)) {
    const SchemaRole next = member_role(role, part);
    if (role == SchemaRole::kSchema && next != SchemaRole::kNames && part != "items" &&
        part != "additionalProperties") {
      return false;
    }
    role = next;
  }
  return role == SchemaRole::kSchema;
}

const StringFormat* find_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &StringFormat::name);
  return found == kFormats.end() ? nullptr : &*found;
}

// Each state of a pattern takes about 10 ms to compile for a vocabulary of 128 k tokens. So the
// labels of a host and the parts of a mailbox are limited to few characters.
std::string bounded_format(std::string_view name, int64_t max_length) {
  constexpr int64_t kLeast = 64;
  if (max_length < kLeast) return "";
  const auto host = [](std::string_view letters) {  // at most 4 labels of 12 characters
    const std::string label = fmt::format("[{0}]([{0}-]{{0,10}}[{0}])?", letters);
    return fmt::format("{0}(\\.{0}){{0,3}}", label);
  };
  if (name == "hostname") return fmt::format("^{}$", host("a-z0-9"));
  if (name != "email") return "";
  constexpr std::string_view kAtom = "[\\w!#$%&'*+/=?^`{|}~-]{1,5}";
  return fmt::format("^{0}(\\.{0})?@{1}$", kAtom, host("A-Za-z0-9"));
}

bool is_loose_format(std::string_view name) {
  return is_one_of(name, kLooseFormats);
}

bool has_type(element value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_bool();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type != "integer" || !value.is_number()) return false;
  if (!value.is_double()) return true;
  const double number = value.get_double().value_unsafe();
  return number == std::floor(number);
}

// Recursion is as deep as the document; the parser bounds its depth.
bool are_equal(element left, element right) {
  charge_work();
  if (left.is_number() && right.is_number()) return number_of(left) == number_of(right);
  if (left.type() != right.type()) return false;
  if (left.is_array()) {
    return are_equal_arrays(left.get_array().value_unsafe(), right.get_array().value_unsafe());
  }
  if (left.is_object()) {
    return are_equal_objects(left.get_object().value_unsafe(), right.get_object().value_unsafe());
  }
  if (left.is_string()) {
    return left.get_string().value_unsafe() == right.get_string().value_unsafe();
  }
  return !left.is_bool() || left.get_bool().value_unsafe() == right.get_bool().value_unsafe();
}

bool read_strings(element value, std::vector<std::string_view>& out) {
  if (value.is_string()) {
    out.push_back(value.get_string().value_unsafe());
    return true;
  }
  simdjson::dom::array items;
  if (value.get_array().get(items)) return false;
  for (const element item : items) {
    if (!item.is_string()) return false;
    out.push_back(item.get_string().value_unsafe());
  }
  return true;
}

bool allows_nothing(element schema) {
  if (schema.is_bool()) return !schema.get_bool().value_unsafe();
  element excluded;
  if (!schema.is_object() || schema["not"].get(excluded)) return false;
  if (excluded.is_bool()) return excluded.get_bool().value_unsafe();
  return excluded.is_object() && excluded.get_object().value_unsafe().size() == 0;
}

Result<Members> members_of(element value) {
  simdjson::dom::object fields;
  if (value.get_object().get(fields)) {
    return invalid_argument(
        "[grammar] the JSON schema has a value that is not an object where it needs a schema");
  }
  Members members;
  for (const auto [key, member] : fields) {
    if (!members.emplace(key, member).second) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has \"{}\" twice", key.substr(0, 64)));
    }
  }
  return members;
}

Result<std::string_view> replacing_keyword(const Members& members) {
  std::string_view replacing;
  for (const std::string_view name : kReplacingKeywords) {
    if (!members.contains(name)) continue;
    if (!replacing.empty() && !(replacing == "const" && name == "enum"))
      return unsupported_beside(name, replacing);
    replacing = name;
  }
  if (replacing.empty()) return replacing;
  for (const auto& [keyword, group] : kKeywords) {
    if (members.contains(keyword)) return unsupported_beside(keyword, replacing);
  }
  return replacing;
}

namespace {

Result<bool> is_nullable(const Members& members) {
  const auto found = members.find("nullable");
  if (found == members.end()) return false;
  bool is_nullable = false;
  if (found->second.get_bool().get(is_nullable)) {
    return invalid_argument("[grammar] the JSON schema's \"nullable\" must be true or false");
  }
  return is_nullable;
}

}  // namespace

Status check_nullable(const Members& members) {
  QUIRE_ASSIGN_OR_RETURN(const bool nullable, is_nullable(members));
  if (!nullable) return {};
  for (const std::string_view keyword : {"$ref", "anyOf", "oneOf", "allOf"}) {
    if (!members.contains(keyword)) continue;
    return not_supported(fmt::format("\"nullable\" beside \"{}\"", keyword),
                         "write \"anyOf\" of the schema and {\"type\": \"null\"}");
  }
  const auto is_null = [](element value) { return value.is_null(); };
  simdjson::dom::array values;
  const bool has_values = members.contains("enum") && !members.at("enum").get_array().get(values);
  const bool has_null = (!members.contains("const") || is_null(members.at("const"))) &&
                        (!has_values || std::any_of(values.begin(), values.end(), is_null));
  if (!has_null) {
    return not_supported("\"nullable\" beside an \"enum\" or \"const\" without null",
                         "add null to the \"enum\" and to the \"type\"");
  }
  if (members.contains("type")) return {};
  for (const auto& [keyword, group] : kKeywords) {
    if (!members.contains(keyword)) continue;
    return not_supported("\"nullable\" without a \"type\"",
                         "write a \"type\" with \"null\" in its list");
  }
  return {};
}

// Removes duplicate types, because XGrammar would write one grammar for each, at every level of
// nesting.
Result<std::vector<std::string_view>> types_of(const Members& members, std::string_view outer) {
  std::vector<std::string_view> types;
  if (const auto found = members.find("type"); found != members.end()) {
    std::vector<std::string_view> listed;
    if (!read_strings(found->second, listed) || listed.empty()) {
      return invalid_argument("[grammar] the JSON schema's \"type\" does not name a type");
    }
    for (const std::string_view type : listed) {
      if (!is_one_of(type, kTypes)) {
        return not_supported(fmt::format("the \"type\" \"{}\"", clipped(type)));
      }
      if (!is_one_of(type, types)) types.push_back(type);
    }
    QUIRE_ASSIGN_OR_RETURN(const bool nullable, is_nullable(members));
    if (nullable && !is_one_of("null", types)) types.emplace_back("null");
  }
  if (outer.empty()) return types;
  if (types.empty()) return std::vector{outer};
  std::erase_if(types, [&](std::string_view type) {
    return type != outer && !(type == "integer" && outer == "number");
  });
  if (types.empty()) return not_supported("a \"type\" that contradicts the one around it");
  return types;
}

Result<std::string_view> implied_type(const Members& members) {
  std::string_view type;
  if (members.contains("properties") || members.contains("additionalProperties")) {
    type = "object";
  } else if (members.contains("items") || members.contains("prefixItems")) {
    type = "array";
  }
  for (const auto& [keyword, group] : kKeywords) {
    if (!members.contains(keyword) || is_restricted_by(type, group)) continue;
    return not_supported(fmt::format("\"{}\" without a \"type\"", keyword));
  }
  return type;
}

Status check_object(const Members& members) {
  const bool has_patterns = members.contains("patternProperties");
  const bool has_names = members.contains("propertyNames");
  for (const std::string_view other : {"properties", "required"}) {
    if (!members.contains(other)) continue;
    if (has_patterns) return unsupported_beside("patternProperties", other);
    if (has_names) return unsupported_beside("propertyNames", other);
  }
  if (has_patterns && has_names) return unsupported_beside("patternProperties", "propertyNames");
  const auto additional = members.find("additionalProperties");
  if (has_names && additional != members.end() && additional->second.is_bool() &&
      !additional->second.get_bool().value_unsafe()) {
    return unsupported_beside("propertyNames", "additionalProperties");
  }
  simdjson::dom::object patterns;
  if (has_patterns && !members.at("patternProperties").get_object().get(patterns) &&
      patterns.size() > 1) {
    return not_supported("more than one of \"patternProperties\" in an object");
  }
  return {};
}

std::string json_string(std::string_view text) {
  JsonWriter writer;
  writer.value(text);
  return writer.text();
}

std::optional<int64_t> count_of(const Members& members, std::string_view keyword) {
  const auto found = members.find(keyword);
  if (found == members.end()) return std::nullopt;
  return found->second.get_int64().value_unsafe();
}

Status check_counts(const Members& members, std::string_view low, std::string_view high) {
  const auto least = count_of(members, low);
  const auto most = count_of(members, high);
  if (!least || !most || *least <= *most) return {};
  return empty_range(low, std::to_string(*least), high, std::to_string(*most));
}

std::string ebnf_string(std::string_view text) {
  std::string ebnf = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '"' || c == '\\') {
      ebnf += fmt::format("\\u{:04x}", byte);
    } else {
      ebnf += c;
    }
  }
  return ebnf + '"';
}

}  // namespace quire::grammar
