#include "server/openai/field_table.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/nearest_word.h"

namespace quire::server {
namespace {

using TypeKind = FieldType::Kind;

// Returns the values of kOneOf.
std::vector<std::string_view> split(std::string_view values) {
  std::vector<std::string_view> out;
  for (size_t at = 0; at <= values.size();) {
    const size_t end = std::min(values.find(' ', at), values.size());
    out.push_back(values.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool equals(Element value, std::string_view json) {
  std::string_view text;
  simdjson::dom::array items;
  bool flag = false;
  double number = 0;
  if (!value.get_string().get(text)) return json == fmt::format("\"{}\"", text);
  if (!value.get_bool().get(flag)) return json == (flag ? "true" : "false");
  if (!value.get_array().get(items)) return json == "[]" && items.size() == 0;
  if (value.get_double().get(number)) return false;
  char* end = nullptr;
  const std::string expected(json);
  return number == std::strtod(expected.c_str(), &end) && end == expected.c_str() + expected.size();
}

// --- JSON schema ---

// A whole number is written without a fraction.
void write_bound(std::string_view key, double bound, JsonWriter& json) {
  if (std::isinf(bound)) return;
  json.key(key);
  const bool is_whole = std::trunc(bound) == bound && std::abs(bound) < 0x1p53;
  is_whole ? json.value(static_cast<int64_t>(bound)) : json.value(bound);
}

void write_type(std::string_view name, bool may_be_null, JsonWriter& json) {
  json.key("type");
  json.raw(may_be_null ? fmt::format(R"(["{}","null"])", name) : fmt::format("\"{}\"", name));
}

// Returns the JSON schema that FieldType::json stands for: its own text, or a reference to the
// schema of that name.
std::string schema_text(std::string_view json) {
  return json.starts_with('{') ? std::string(json)
                               : fmt::format(R"({{"$ref":"#/components/schemas/{}"}})", json);
}

void write_one_of(std::string_view values, bool may_be_null, JsonWriter& json) {
  if (values == "[]") {
    write_type("array", may_be_null, json);
    json.field("maxItems", 0);
    return;
  }
  json.key("enum");
  json.begin_array();
  for (const std::string_view value : split(values)) json.raw(value);
  if (may_be_null) json.null();
  json.end_array();
}

void write_schema_of(std::string_view text, bool may_be_null, JsonWriter& json) {
  json.key("anyOf");
  json.begin_array();
  if (may_be_null) json.raw(R"({"type":"null"})");
  json.raw(schema_text(text));
  json.end_array();
}

// Writes the members of the JSON schema of a value.
void write_values(const FieldType& type, bool may_be_null, JsonWriter& json) {
  const auto write_range = [&](std::string_view min_key, std::string_view max_key) {
    write_bound(min_key, type.range.min, json);
    write_bound(max_key, type.range.max, json);
  };
  switch (type.kind) {
    case TypeKind::kAny:
      return;
    case TypeKind::kNull:
      return json.field("type", "null");
    case TypeKind::kBool:
      return write_type("boolean", may_be_null, json);
    case TypeKind::kInt:
      write_type("integer", may_be_null, json);
      return write_range("minimum", "maximum");
    case TypeKind::kNumber:
      write_type("number", may_be_null, json);
      return write_range(type.range.min_excluded ? "exclusiveMinimum" : "minimum", "maximum");
    case TypeKind::kText:
      write_type("string", may_be_null, json);
      if (type.range.min > 0) write_bound("minLength", type.range.min, json);
      return write_bound("maxLength", type.range.max, json);
    case TypeKind::kOneOf:
      return write_one_of(type.json, may_be_null, json);
    case TypeKind::kList:
      write_type("array", may_be_null, json);
      json.key("items");
      json.raw(schema_text(type.json));
      if (type.range.min > 0) write_bound("minItems", type.range.min, json);
      return write_bound("maxItems", type.range.max, json);
    case TypeKind::kSchema:
      return write_schema_of(type.json, may_be_null, json);
  }
}

std::string description(const Field& field) {
  switch (field.use) {
    case FieldUse::kHonoured:
      return std::string(field.help);
    case FieldUse::kNoEffect:
      return fmt::format("No effect{}{}.", field.help.empty() ? "" : ": ", field.help);
    case FieldUse::kRefused:
      return fmt::format("Refused; expected {}.", field.help);
  }
  return "";
}

// --- Documentation ---

std::string bounds_text(const Range& range) {
  const bool is_below = range.min > INT_MIN;
  const bool is_above = range.max < INT_MAX;
  if (range.min_excluded) return fmt::format(" above {} and at most {}", range.min, range.max);
  if (is_below && is_above) return fmt::format(" from {} to {}", range.min, range.max);
  if (is_below) return fmt::format(" of at least {}", range.min);
  return is_above ? fmt::format(" of at most {}", range.max) : "";
}

std::string value_words(const FieldType& type) {
  switch (type.kind) {
    case TypeKind::kAny:
      return "any";
    case TypeKind::kNull:
      return "none";
    case TypeKind::kBool:
      return "true or false";
    case TypeKind::kInt:
      return "an integer" + bounds_text(type.range);
    case TypeKind::kNumber:
      return "a number" + bounds_text(type.range);
    case TypeKind::kText:
      if (std::isinf(type.range.max)) return "a text";
      if (type.range.min == 0) return fmt::format("a text of at most {} bytes", type.range.max);
      return fmt::format("a text of {} to {} bytes", type.range.min, type.range.max);
    case TypeKind::kOneOf:
      return fmt::format("`{}`", fmt::join(split(type.json), "`, `"));
    case TypeKind::kList:
      return std::isinf(type.range.max) ? "a list"
                                        : fmt::format("a list of at most {}", type.range.max);
    case TypeKind::kSchema:
      return std::string(type.words);
  }
  return "";
}

// Returns the table cell that describes the field's effect. The reason of a refusal is the text
// after the colon, as in "false: this server does not support this option".
std::string use_words(const Field& field) {
  std::string_view help = field.help;
  if (help.ends_with('.')) help.remove_suffix(1);
  if (field.use == FieldUse::kHonoured) return std::string(help);
  if (field.use == FieldUse::kNoEffect) {
    return fmt::format("no effect{}{}", help.empty() ? "" : ": ", help);
  }
  const bool accepts_none = field.type.kind == TypeKind::kNull;
  const std::string_view refusal = accepts_none ? "refused" : "others are refused";
  const size_t colon = help.find(": ");
  if (colon != std::string_view::npos) return fmt::format("{}{}", refusal, help.substr(colon));
  return accepts_none ? fmt::format("refused; use {}", help) : std::string(refusal);
}

std::string cells_of(const Field& field) {
  return fmt::format("{}{} | {}", value_words(field.type), field.is_required ? "; required" : "",
                     use_words(field));
}

}  // namespace

FieldError refuse(const Field& field, const Path& path, Element value) {
  if (field.type.kind == TypeKind::kOneOf) {
    for (const std::string_view accepted : split(field.type.json)) {
      if (equals(value, accepted)) return {};
    }
  }
  return unexpected(path, value, field.help);
}

FieldError unknown_member(const Path& path, std::string_view name, std::string_view expected,
                          std::span<const std::string> names) {
  const std::string meant = nearest_word(name, names);
  return field_error(
      path, fmt::format("got an unknown member '{}', expected {}{}", clipped(name), expected,
                        meant.empty() ? "" : "; did you mean '" + meant + "'?"));
}

FieldError read_value(const FieldType& /*type*/, const Path& path, Element value, bool& out) {
  return read_bool(path, value, out);
}

FieldError read_value(const FieldType& type, const Path& path, Element value, int& out) {
  return read_int(path, value, static_cast<int>(type.range.min), static_cast<int>(type.range.max),
                  out);
}

FieldError read_value(const FieldType& type, const Path& path, Element value,
                      std::optional<int>& out) {
  return read_value(type, path, value, out.emplace());
}

FieldError read_value(const FieldType& type, const Path& path, Element value, std::string& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  if (std::isinf(type.range.max) || type.range.contains(static_cast<double>(out.size()))) return {};
  return unexpected(path, value,
                    fmt::format("{} to {} bytes of text", type.range.min, type.range.max));
}

FieldError read_value(const FieldType& /*type*/, const Path& /*path*/, Element value,
                      std::optional<Element>& out) {
  out = value;
  return {};
}

void ObjectSchema::add(const Field& field) {
  if (std::ranges::find(fields, field.name, &Field::name) == fields.end()) fields.push_back(field);
}

void ObjectSchema::add(std::span<const Field> others) {
  for (const Field& field : others) add(field);
}

void ObjectSchema::add(const ObjectSchema& other, std::initializer_list<std::string_view> names) {
  for (const Field& field : other.fields) {
    if (std::ranges::find(names, field.name) != names.end()) add(field);
  }
}

void write_schema(const ObjectSchema& object, JsonWriter& json) {
  json.begin_object();
  json.field("type", "object");
  if (!object.help.empty()) json.field("description", object.help);
  if (object.is_closed) {
    json.key("additionalProperties");
    json.raw(R"({"type":"null"})");
  }
  json.key("properties");
  json.begin_object();
  for (const Field& field : object.fields) {
    json.key(field.name);
    json.begin_object();
    write_values(field.type, !field.is_required, json);
    const std::string text = description(field);
    if (!text.empty()) json.field("description", text);
    json.end_object();
  }
  json.end_object();
  if (std::ranges::any_of(object.fields, &Field::is_required)) {
    json.key("required");
    json.begin_array();
    for (const Field& field : object.fields) {
      if (field.is_required) json.value(field.name);
    }
    json.end_array();
  }
  json.end_object();
}

std::string markdown_table(const ObjectSchema& object) {
  constexpr size_t kMaxNames = 90;  // characters
  std::string table = "| field | value | here |\n|---|---|---|\n";
  std::string names;
  std::string cells;
  const auto end_row = [&] {
    if (!names.empty()) table += fmt::format("| {} | {} |\n", std::exchange(names, ""), cells);
  };
  for (const Field& field : object.fields) {
    const bool is_absent =  // described by another object, see openai_schemas()
        field.type.kind == TypeKind::kNull && field.use == FieldUse::kHonoured;
    if (is_absent) continue;
    const std::string own_cells = cells_of(field);
    if (own_cells != cells || names.size() + field.name.size() > kMaxNames) end_row();
    names += fmt::format("{}`{}`", names.empty() ? "" : ", ", field.name);
    cells = own_cells;
  }
  end_row();
  return table;
}

}  // namespace quire::server
