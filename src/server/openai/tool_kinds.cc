#include "server/openai/tool_kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/json_writer.h"
#include "server/openai/conversation.h"

namespace quire::server {
namespace {

using jinja::Value;

// OpenAI's and Anthropic's types, without their versions.
constexpr auto kHosted = std::to_array<std::string_view>({"apply_patch",
                                                          "bash",
                                                          "code_execution",
                                                          "code_interpreter",
                                                          "computer",
                                                          "computer_use",
                                                          "computer_use_preview",
                                                          "file_search",
                                                          "image_generation",
                                                          "local_shell",
                                                          "mcp",
                                                          "mcp_toolset",
                                                          "memory",
                                                          "namespace",
                                                          "shell",
                                                          "text_editor",
                                                          "tool_search",
                                                          "tool_search_tool_bm25",
                                                          "tool_search_tool_regex",
                                                          "web_fetch",
                                                          "web_search",
                                                          "web_search_preview"});

constexpr std::string_view kCustomSchema =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],)"
    R"("additionalProperties":false})";

// Reads the grammar of {"type": "grammar", "syntax", "definition"}, or of the same below "grammar".
// The grammar does not restrict the output; the model reads it in the tool's description.
FieldError read_format(const Path& path, Element value, std::string& description) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  simdjson::dom::object inner;
  if (!fields["grammar"].get_object().get(inner)) fields = inner;
  std::string syntax;
  std::string definition;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "syntax", syntax));
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "definition", definition));
  if (definition.empty()) return {};
  description += fmt::format("{}The input follows this {} grammar:\n{}",
                             description.empty() ? "" : "\n\n", syntax, definition);
  return {};
}

void write_readable(Element value, JsonWriter& json) {
  simdjson::dom::array items;
  simdjson::dom::object members;
  if (!value.get_array().get(items)) {
    json.begin_array();
    for (const Element item : items) write_readable(item, json);
    json.end_array();
  } else if (!value.get_object().get(members)) {
    json.begin_object();
    for (const auto& [name, member] : members) {
      if (name.starts_with("encrypted_")) continue;
      json.key(name);
      write_readable(member, json);
    }
    json.end_object();
  } else {
    json.raw(simdjson::minify(value));
  }
}

}  // namespace

bool is_hosted_tool(std::string_view type) {
  // A version is for example "_20250305" or "_2025_03_11". The whole type is reported in a header.
  constexpr size_t kMaxVersionBytes = 12;
  const size_t end = std::min(type.find_last_not_of("_0123456789"), type.size() - 1) + 1;
  if (type.size() - end > kMaxVersionBytes) return false;
  type = type.substr(0, end);
  return std::ranges::find(kHosted, type) != kHosted.end();
}

void ignore_tool(std::string_view type, std::vector<std::string>& ignored) {
  ignore_part("tools." + std::string(type), ignored);
}

FieldError read_custom_tool(const Path& path, const simdjson::dom::object& fields,
                            std::vector<Tool>& out, Value& shown) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_function_fields(path, fields, "parameters", out));
  Tool& tool = out.back();
  tool.parameters = kCustomSchema;
  tool.is_custom = true;
  std::string description;
  QUIRE_RETURN_IF_FIELD_ERROR(read_optional(path, fields, "description", description));
  Element format;
  if (!fields["format"].get(format) && !format.is_null()) {
    QUIRE_RETURN_IF_FIELD_ERROR(read_format(Path(path, "format"), format, description));
  }
  const Value parameters = Value::dict(
      {{"type", Value::string("object")},
       {"properties", Value::dict({{"input", Value::dict({{"type", Value::string("string")}})}})},
       {"required", Value::list({Value::string(kCustomArgument)})},
       {"additionalProperties", Value::boolean(false)}});
  shown = Value::dict({{"type", Value::string("function")},
                       {"function", Value::dict({{"name", Value::string(tool.name)},
                                                 {"description", Value::string(description)},
                                                 {"parameters", parameters}})}});
  return {};
}

Value custom_arguments(std::string_view input, uint32_t owner) {
  return Value::dict({{std::string(kCustomArgument), Value::string(input, owner)}});
}

std::string custom_input(std::string_view arguments) {
  const auto document = JsonDocument::parse(arguments, "arguments");
  std::string_view input;
  if (document.ok() && !document->root()[kCustomArgument].get_string().get(input)) {
    return std::string(input);
  }
  return std::string(arguments);
}

bool is_custom_tool(const ChatRequest& request, std::string_view name) {
  const Tool* const tool = find_tool(request.tools, name);
  return tool != nullptr && tool->is_custom;
}

std::string readable_json(Element value) {
  JsonWriter json;
  write_readable(value, json);
  return json.take();
}

}  // namespace quire::server
