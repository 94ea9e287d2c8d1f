#include "server/tools/argument_types.h"

#include <simdjson.h>

#include "base/ascii.h"
#include "base/json.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

using Type = ArgumentTypes::Type;
using Element = simdjson::dom::element;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxVisits = 256;  // schemas per property, because references can repeat

uint8_t named_type(std::string_view name) {
  if (name == "string") return Type::kString;
  if (name == "integer") return Type::kInteger;
  if (name == "number") return Type::kNumber;
  if (name == "boolean") return Type::kBoolean;
  if (name == "null") return Type::kNull;
  if (name == "object") return Type::kObject;
  return name == "array" ? Type::kArray : 0;
}

uint8_t type_of_value(const Element& value) {
  switch (value.type()) {
    case simdjson::dom::element_type::ARRAY:
      return Type::kArray;
    case simdjson::dom::element_type::OBJECT:
      return Type::kObject;
    case simdjson::dom::element_type::STRING:
      return Type::kString;
    case simdjson::dom::element_type::BOOL:
      return Type::kBoolean;
    case simdjson::dom::element_type::NULL_VALUE:
      return Type::kNull;
    case simdjson::dom::element_type::DOUBLE:
      return Type::kNumber;
    default:
      return Type::kInteger;
  }
}

class SchemaTypes {
 public:
  explicit SchemaTypes(const Element& root) : root_(root) {}

  uint8_t of(const Element& schema, int depth) {
    simdjson::dom::object object;
    if (depth > kMaxDepth || ++num_visits_ > kMaxVisits || schema.get(object)) return 0;
    uint8_t bits = of_type(object) | of_values(object);
    for (const char* keyword : {"anyOf", "oneOf", "allOf"}) {
      simdjson::dom::array choices;
      if (object[keyword].get(choices)) continue;
      for (const Element choice : choices) bits |= of(choice, depth + 1);
    }
    std::string_view reference;
    Element target;
    const bool refers = !object["$ref"].get(reference) && reference.starts_with("#/") &&
                        !root_.at_pointer(reference.substr(1)).get(target);
    if (refers) bits |= of(target, depth + 1);
    bool is_nullable = false;
    if (!object["nullable"].get(is_nullable) && is_nullable) bits |= Type::kNull;
    return bits;
  }

 private:
  static uint8_t of_type(simdjson::dom::object object) {
    std::string_view name;
    if (!object["type"].get(name)) return named_type(name);
    simdjson::dom::array names;
    uint8_t bits = 0;
    if (object["type"].get(names)) return bits;
    for (const Element each : names) {
      if (!each.get(name)) bits |= named_type(name);
    }
    return bits;
  }

  static uint8_t of_values(simdjson::dom::object object) {
    Element value;
    if (!object["const"].get(value)) return type_of_value(value);
    simdjson::dom::array values;
    uint8_t bits = 0;
    if (object["enum"].get(values)) return bits;
    for (const Element each : values) bits |= type_of_value(each);
    return bits;
  }

  const Element& root_;
  size_t num_visits_ = 0;
};

// Reads the whole text as one container.
std::string read_container(std::string_view text, const JsonNotation& notation) {
  JsonScanner json;
  LooseJson loose(notation);
  std::string out;
  const auto emit = [&](char c) {
    if (json.done() || !json.push(c)) return false;
    out += c;
    return true;
  };
  // The Python notation expects the values within the parentheses of a call. The bracket stands for
  // the parenthesis, and is removed below.
  if (notation.python && !emit('[')) return {};
  for (const char c : text) {
    if (json.done() || !loose.push(c, json, emit)) return {};
  }
  if (notation.python) {
    if (json.depth() != 1 || !json.can_close()) return {};
    return out.substr(1);
  }
  return json.done() ? out : std::string();
}

}  // namespace

std::map<std::string, ArgumentTypes, std::less<>> argument_types(std::string_view schema) {
  std::map<std::string, ArgumentTypes, std::less<>> types;
  const auto document = JsonDocument::parse(schema, "the schema");
  if (!document.ok()) return types;
  const Element root = document->root();
  simdjson::dom::object properties;
  if (root["properties"].get(properties)) return types;
  for (const auto& [key, value] : properties) {
    types[std::string(key)] = {.bits = SchemaTypes(root).of(value, 0)};
  }
  return types;
}

std::string container_value(std::string_view text) {
  text = trimmed(text);
  if (text.empty() || (text.front() != '{' && text.front() != '[')) return {};
  static const JsonNotation kJson;
  static const JsonNotation kPython = {.python = true};
  std::string json = read_container(text, kJson);
  return json.empty() ? read_container(text, kPython) : json;
}

std::string typed_value(std::string_view text, ArgumentTypes types) {
  const std::string_view value = trimmed(text);
  if (types.has(Type::kNull) && (value == "null" || value == "None")) return "null";
  if (types.has(Type::kBoolean)) {
    if (equals_ignoring_case(value, "true")) return "true";
    if (equals_ignoring_case(value, "false")) return "false";
  }
  const bool is_number =
      (types.has(Type::kInteger) || types.has(Type::kNumber)) && is_json_number(value);
  if (is_number) {
    const bool is_whole = value.find_first_of(".eE") == std::string_view::npos;
    if (is_whole || types.has(Type::kNumber)) return std::string(value);
    // In JSON Schema, 3.0 is an integer.
    const size_t dot = value.find('.');
    const bool has_zeros = dot != std::string_view::npos &&
                           value.find_first_not_of('0', dot + 1) == std::string_view::npos;
    if (has_zeros) return std::string(value);
  }
  if (types.has(Type::kObject) || types.has(Type::kArray)) {
    const bool fits = !value.empty() && ((value.front() == '{' && types.has(Type::kObject)) ||
                                         (value.front() == '[' && types.has(Type::kArray)));
    std::string container = fits ? container_value(value) : std::string();
    if (!container.empty()) return container;
  }
  std::string quoted = "\"";
  append_escaped(quoted, text);
  return quoted + '"';
}

}  // namespace quire::server
