// Tables of the fields of request bodies. A table is the only description of an object's fields:
// the readers look up fields in it, and /openapi.json and the tables of docs/ are generated from
// it.
#pragma once

#include <algorithm>
#include <climits>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/json_writer.h"
#include "base/numbers.h"
#include "server/openai/json_fields.h"

namespace quire::server {

// The server's treatment of a field that is not null. Null is the same as absent.
enum class FieldUse {
  kHonoured,
  kNoEffect,  // any value is accepted, and the response is the same without the field
  kRefused,   // 400 for values other than the type's: ignoring them would surprise the client
};

// The values that a field may have.
struct FieldType {
  enum class Kind { kAny, kNull, kBool, kInt, kNumber, kText, kOneOf, kList, kSchema };

  Kind kind = Kind::kAny;
  Range range = {};  // of a number, of a text's bytes, or of a list's items
  // kOneOf: JSON values, separated by spaces. kSchema, kList: the JSON schema of the value or of an
  // item, or the name of a schema of /openapi.json.
  std::string_view json = {};
  std::string_view words = {};  // kSchema: the values in the words of the documentation
};

struct Field {
  std::string_view name;
  FieldType type = {};
  // Documents the field. If the field is refused, the error says that this text was expected.
  std::string_view help = {};
  FieldUse use = FieldUse::kHonoured;
  bool is_required = false;
};

// Make types and fields for the rows of a table.
inline constexpr FieldType kAnyValue = {};
inline constexpr FieldType kBoolean = {FieldType::Kind::kBool};
inline constexpr FieldType kTextValue = {FieldType::Kind::kText};
constexpr FieldType integer(int min, int max = INT_MAX) {
  return {FieldType::Kind::kInt,
          {.min = static_cast<double>(min), .max = static_cast<double>(max)}};
}
constexpr FieldType number(const Range& range) {
  return {FieldType::Kind::kNumber, range};
}
constexpr FieldType string_of(size_t min_bytes, size_t max_bytes) {
  return {FieldType::Kind::kText,
          {.min = static_cast<double>(min_bytes), .max = static_cast<double>(max_bytes)}};
}
constexpr FieldType one_of(std::string_view values) {
  return {FieldType::Kind::kOneOf, {}, values};
}
constexpr FieldType list_of(std::string_view item_schema, size_t max, size_t min = 0) {
  return {FieldType::Kind::kList,
          {.min = static_cast<double>(min),
           .max = max == SIZE_MAX ? Range().max : static_cast<double>(max)},
          item_schema};
}
constexpr FieldType schema(std::string_view words, std::string_view json) {
  return {FieldType::Kind::kSchema, {}, json, words};
}
constexpr Field required(Field field) {
  field.is_required = true;
  return field;
}
constexpr Field without_effect(std::string_view name, std::string_view help = {}) {
  return {name, kAnyValue, help, FieldUse::kNoEffect};
}
constexpr Field refused(std::string_view name, std::string_view expected) {
  return {name, {FieldType::Kind::kNull}, expected, FieldUse::kRefused};
}
// Accepts only these values, which are the default: {"background", "false"}.
constexpr Field only(std::string_view name, std::string_view values, std::string_view expected) {
  return {name, one_of(values), expected, FieldUse::kRefused};
}
inline constexpr std::string_view kOnlyFalse = "false: this server does not support this option";

// Returns the error of a refused field, unless its type allows the value.
FieldError refuse(const Field& field, const Path& path, Element value);
// Returns the error for the unknown member `name` of the object at `path`, whose known members are
// `names`.
FieldError unknown_member(const Path& path, std::string_view name, std::string_view expected,
                          std::span<const std::string> names);

// A row of a table: a field, and the function that reads it if it is honoured. `Body` collects the
// fields of one request.
template <typename Body>
struct BodyField {
  Field field;
  FieldError (*reader)(Body& body, const Field& field, const Path& path, Element value) = nullptr;

  FieldError read(Body& body, const Path& path, Element value) const {
    if (field.use == FieldUse::kNoEffect) return {};
    if (field.use == FieldUse::kRefused) return refuse(field, path, value);
    return reader(body, field, path, value);
  }
};

template <typename Body>
using FieldTable = std::span<const BodyField<Body>>;

template <typename Body>
const BodyField<Body>* find_field(FieldTable<Body> table, std::string_view name) {
  const auto found =
      std::ranges::find_if(table, [&](const auto& row) { return row.field.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// Read a value of the field's type. An Element is stored as it is, to be read later.
FieldError read_value(const FieldType& type, const Path& path, Element value, bool& out);
FieldError read_value(const FieldType& type, const Path& path, Element value, int& out);
FieldError read_value(const FieldType& type, const Path& path, Element value,
                      std::optional<int>& out);
FieldError read_value(const FieldType& type, const Path& path, Element value, std::string& out);
FieldError read_value(const FieldType& type, const Path& path, Element value,
                      std::optional<Element>& out);

// Returns the object that has the member: the body itself, or one of body.parts(), a tuple of
// references.
template <typename Body, typename T, typename Owner>
Owner& owner_of(Body& body, T Owner::* /*member*/) {
  if constexpr (std::is_same_v<Owner, Body>) {
    return body;
  } else {
    return std::get<Owner&>(body.parts());
  }
}

// The readers of rows. A field is read into a member, by a member function, or by a function that
// only checks it: into<&ChatRequest::include_reasoning>, call<&ChatFields::read_stops>,
// check<check_modalities>.
template <auto kMember, typename Body>
FieldError into(Body& body, const Field& field, const Path& path, Element value) {
  return read_value(field.type, path, value, owner_of(body, kMember).*kMember);
}
template <auto kMethod, typename Body>
FieldError call(Body& body, const Field& /*field*/, const Path& path, Element value) {
  return std::invoke(kMethod, owner_of(body, kMethod), path, value);
}
template <auto kFunction, typename Body>
FieldError check(Body& /*body*/, const Field& /*field*/, const Path& path, Element value) {
  return kFunction(path, value);
}

// Reads the members of an object that are not null or an empty list. Members that are not in the
// table have no effect; if `known` is not empty, they are refused with `known` as the expected
// value.
template <typename Body>
FieldError read_members(FieldTable<Body> table, Body& body, const Path& path, Element value,
                        std::string_view known = {}) {
  simdjson::dom::object members;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, members));
  for (const auto& [name, member] : members) {
    if (is_absent(member)) continue;
    if (const BodyField<Body>* const row = find_field(table, name)) {
      QUIRE_RETURN_IF_FIELD_ERROR(row->read(body, Path(path, name), member));
    } else if (!known.empty()) {
      std::vector<std::string> names;
      for (const BodyField<Body>& each : table) names.emplace_back(each.field.name);
      return unknown_member(path, name, known, names);
    }
  }
  return {};
}

// The description of an object with all its fields.
struct ObjectSchema {
  std::string_view name;  // of the schema in /openapi.json
  std::string_view help = {};
  bool is_closed = false;  // other fields are refused; otherwise they have no effect
  std::vector<Field> fields = {};

  // Add fields, except for those that the object has already.
  void add(const Field& field);
  void add(std::span<const Field> others);
  template <typename Body>
  void add(FieldTable<Body> table) {
    for (const BodyField<Body>& row : table) add(row.field);
  }
  // Adds the fields of `other` that have one of these names.
  void add(const ObjectSchema& other, std::initializer_list<std::string_view> names);
};

// Writes the JSON schema of the object.
void write_schema(const ObjectSchema& object, JsonWriter& json);
// Returns the object's fields as a table of a Markdown page. Adjacent fields with equal values and
// texts share a row.
std::string markdown_table(const ObjectSchema& object);

}  // namespace quire::server
