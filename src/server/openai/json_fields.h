// Readers for the fields of a JSON body. Each error names its field.
#pragma once

#include <simdjson.h>

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "server/openai/api_error.h"

namespace quire::server {

using Element = simdjson::dom::element;
using FieldError = std::optional<ApiError>;  // empty: no error

#define QUIRE_RETURN_IF_FIELD_ERROR(expr) \
  QUIRE_RETURN_IF_FIELD_ERROR_(QUIRE_CONCAT_(error_, __LINE__), expr)
#define QUIRE_RETURN_IF_FIELD_ERROR_(error, expr)                        \
  do {                                                                   \
    if (::quire::server::FieldError error = (expr); error) return error; \
  } while (false)

// The location of a value, such as "messages[2].content". Refers to its parent and its name, which
// must outlive it.
struct Path {
  const Path* parent = nullptr;
  std::string_view name = {};
  size_t idx = 0;  // used if `name` is empty

  Path(std::string_view field) : name(field) {}  // NOLINT(google-explicit-constructor)
  Path(const char* field) : name(field) {}       // NOLINT(google-explicit-constructor)
  Path(const Path& of, std::string_view field) : parent(&of), name(field) {}
  Path(const Path& of, size_t item) : parent(&of), idx(item) {}
  std::string text() const;
};

// Whether a field's value means that the field is absent: null, or an empty list.
bool is_absent(Element value);

// Returns the error `[request] PATH; got …, expected …`.
FieldError unexpected(const Path& path, Element got, std::string_view expected);
// Returns the error `[request] PATH; got none, expected …`, for a key that its object lacks.
FieldError missing(const Path& path, std::string_view expected);
// Returns the error `[request] PATH; …`.
FieldError field_error(const Path& path, std::string_view what);

FieldError read_text(const Path& path, Element value, std::string& out);
FieldError read_bool(const Path& path, Element value, bool& out);
FieldError read_int(const Path& path, Element value, int least, int most, int& out);
// Reads a list of at least one token id.
FieldError read_ids(const Path& path, Element value, std::vector<int32_t>& out);
FieldError read_texts(const Path& path, Element value, size_t max_texts,
                      std::vector<std::string>& out);
FieldError read_list(const Path& path, Element value, size_t max_items, simdjson::dom::array& out);
FieldError read_object(const Path& path, Element value, simdjson::dom::object& out);
// Reads each item of a list: `read(path, item)`.
template <typename Read>
FieldError read_items(const Path& path, Element value, size_t max_items, Read&& read) {
  simdjson::dom::array items;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, max_items, items));
  size_t idx = 0;
  for (const Element item : items) QUIRE_RETURN_IF_FIELD_ERROR(read(Path(path, idx++), item));
  return {};
}
// Reads each item of a list of objects: `read(path, fields)`.
template <typename Read>
FieldError read_objects(const Path& path, Element value, size_t max_items, Read&& read) {
  return read_items(path, value, max_items, [&](const Path& at, Element item) -> FieldError {
    simdjson::dom::object fields;
    QUIRE_RETURN_IF_FIELD_ERROR(read_object(at, item, fields));
    return read(at, fields);
  });
}
// Read the field `name` of the object at `path`, which must have it.
FieldError read_required(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, std::string& out);
FieldError read_required(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, simdjson::dom::object& out);
// Reads a text that the object at `path` may lack, or that may be null.
FieldError read_optional(const Path& path, const simdjson::dom::object& fields,
                         std::string_view name, std::string& out);

// Parses a body that must be an object. Refuses a key that occurs twice in any of its objects,
// because JSON readers differ in which value they use.
FieldError parse_body(std::string_view body, size_t max_depth, std::optional<JsonDocument>& out);

}  // namespace quire::server
