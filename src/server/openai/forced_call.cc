#include <simdjson.h>

#include <string>
#include <utility>

#include "base/json.h"
#include "grammar/schema_keywords.h"
#include "server/openai/json_text.h"
#include "server/openai/requests.h"

namespace quire::server {
namespace {

using grammar::Place;
using simdjson::dom::element;

// Appends `value`, with its local references resolved from `root` instead of the document's root.
// The recursion depth is bounded by the parser's depth limit.
void append_moved(element value, Place place, std::string_view root, std::string& out) {
  const char* separator = "";
  if (place != Place::kData && value.is_array()) {
    out += '[';
    const simdjson::dom::array items = value.get_array().value_unsafe();
    for (const element item : items) {
      out += std::exchange(separator, ",");
      append_moved(item, place, root, out);
    }
    out += ']';
  } else if (place != Place::kData && value.is_object()) {
    out += '{';
    const simdjson::dom::object members = value.get_object().value_unsafe();
    for (const auto& [key, member] : members) {
      out += std::exchange(separator, ",");
      append_string(key, out);
      out += ':';
      std::string_view uri;
      if (place == Place::kSchema && key == "$ref" && !member.get_string().get(uri) &&
          uri.starts_with('#')) {
        append_string(std::string(root) + std::string(uri.substr(1)), out);
      } else {
        append_moved(member, grammar::member_place(place, key), root, out);
      }
    }
    out += '}';
  } else {
    out += simdjson::minify(value);
  }
}

// Appends a tool's parameters as #/$defs/IDX, together with their own definitions: two tools may
// define the same name differently.
void append_parameters(const Tool& tool, size_t tool_idx, std::string& out) {
  append_string(std::to_string(tool_idx), out);
  out += ':';
  const auto document = JsonDocument::parse(tool.parameters, "parameters");
  if (tool.parameters == "{}" || !document.ok()) {
    out += R"({"type":"object"})";
    return;
  }
  append_moved(document->root(), Place::kSchema, "#/$defs/" + std::to_string(tool_idx), out);
}

}  // namespace

Restriction forced_call_schema(const ChatRequest& call) {
  Restriction restriction = {.grammar = {.kind = GrammarSpec::Kind::kJsonSchema}, .field = "tools"};
  std::string& out = restriction.grammar.text;
  if (call.tool_choice == ToolChoice::kNamed) {
    for (const Tool& tool : call.tools) {
      if (tool.name == call.named_tool) out = tool.parameters;
    }
    if (out == "{}") out = R"({"type":"object"})";
    return restriction;
  }
  out = R"({"type":"array","minItems":1,)";
  if (!call.parallel_tool_calls) out += R"("maxItems":1,)";
  out += R"("items":{"anyOf":[)";
  for (size_t i = 0; i < call.tools.size(); ++i) {
    if (i > 0) out += ',';
    out += R"({"type":"object","properties":{"name":{"type":"string","enum":[)";
    append_string(call.tools[i].name, out);
    out += R"(]},"parameters":{"$ref":"#/$defs/)" + std::to_string(i);
    out += R"("}},"required":["name","parameters"],"additionalProperties":false})";
  }
  out += R"(]},"$defs":{)";
  for (size_t i = 0; i < call.tools.size(); ++i) {
    if (i > 0) out += ',';
    append_parameters(call.tools[i], i, out);
  }
  out += "}}";
  return restriction;
}

}  // namespace quire::server
