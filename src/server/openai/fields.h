// Reading fields of a JSON body: each fault names its field.
#pragma once

#include <simdjson.h>

#include <climits>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/one_line.h"
#include "server/openai/call_error.h"

namespace quire::server {

using Element = simdjson::dom::element;
using Fault = std::optional<CallError>;  // nothing: all is well

#define QUIRE_RETURN_IF_FAULT(expr) QUIRE_RETURN_IF_FAULT_(QUIRE_CONCAT_(fault_, __LINE__), expr)
#define QUIRE_RETURN_IF_FAULT_(fault, expr)                         \
  do {                                                              \
    if (::quire::server::Fault fault = (expr); fault) return fault; \
  } while (false)

// Where a value stands, "messages[2].content". Lives on the stack, beside the value.
struct Path {
  const Path* parent = nullptr;
  std::string_view name = {};
  size_t idx = 0;  // where there is no name

  Path(std::string_view field) : name(field) {}  // NOLINT(google-explicit-constructor)
  Path(const char* field) : name(field) {}       // NOLINT(google-explicit-constructor)
  Path(const Path& of, std::string_view field) : parent(&of), name(field) {}
  Path(const Path& of, size_t item) : parent(&of), idx(item) {}
  std::string text() const;
};

// `[request] PATH; got …, expected …`
Fault unexpected(const Path& path, Element got, std::string_view expected);
// `[request] PATH; got none, expected …`, for a key that its object lacks.
Fault missing(const Path& path, std::string_view expected);
// `[request] PATH; …`
Fault fault_at(const Path& path, std::string_view what);

Fault read_text(const Path& path, Element value, std::string& out);
Fault read_bool(const Path& path, Element value, bool& out);
// Known, and not what this server does: silence would be worse than a refusal.
Fault refuse_unless_false(const Path& path, Element value);
Fault read_int(const Path& path, Element value, int least, int most, int& out);
// Token ids; at least one.
Fault read_ids(const Path& path, Element value, std::vector<int32_t>& out);
Fault read_texts(const Path& path, Element value, size_t max_texts, std::vector<std::string>& out);
Fault read_list(const Path& path, Element value, size_t max_items, simdjson::dom::array& out);
Fault read_object(const Path& path, Element value, simdjson::dom::object& out);

// The document of a body that is an object. A key that any of its objects has twice is refused:
// readers of JSON differ in which of the values they take.
Fault parse_body(std::string_view body, size_t max_depth, std::optional<JsonDocument>& out);

// Maps a field's name to its reader. Null fields are skipped.
template <typename Reader>
using FieldHandlers =
    std::unordered_map<std::string_view, Fault (*)(Reader&, const Path&, Element)>;

}  // namespace quire::server
