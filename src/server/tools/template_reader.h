// Helpers that read a response template's JSON. Errors are one line each.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "server/tools/form.h"
#include "server/tools/response_template.h"

namespace quire::server {

Status bad_template(std::string_view what);
// Reads one string or a list of them, each of 1 to 256 bytes; returns none if the key is missing.
Result<std::vector<std::string>> strings(simdjson::dom::object object, std::string_view key);
// Returns false if the key is missing or its value is not a boolean.
bool flag(simdjson::dom::object object, std::string_view key);
// Returns `fallback` if the key is missing or its value is not a string.
std::string_view text_of(simdjson::dom::object object, std::string_view key,
                         std::string_view fallback = {});
Status check_keys(simdjson::dom::object object, std::string_view what,
                  std::initializer_list<const char*> known);

enum class Space : uint8_t { kKeep, kBefore };
enum class FormKind : uint8_t { kForm, kLiteral, kPattern };
// Appends a form per text under the key. kBefore: optional white space may precede each form.
Status add_forms(simdjson::dom::object object, std::string_view key, FormKind kind, Space space,
                 std::vector<Form>& forms);

// Reads one member of "fields". A name may have a suffix after a dot: "tool_calls.named".
Result<TemplateField> read_field(std::string_view name, const simdjson::dom::element& value);

}  // namespace quire::server
