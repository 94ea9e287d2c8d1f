#include "server/openai/tool_schemas.h"

#include <utility>

#include "base/json.h"
#include "base/json_writer.h"
#include "grammar/schema_keywords.h"

namespace quire::server {
namespace {

using grammar::SchemaRole;
using Element = simdjson::dom::element;

constexpr std::string_view kAnyObject = R"({"type":"object"})";

// Writes `value`, with its local references resolved from `root` instead of the document's root.
// The recursion depth is bounded by the parser's depth limit.
void write_moved(Element value, SchemaRole role, std::string_view root, JsonWriter& json) {
  if (role != SchemaRole::kData && value.is_array()) {
    json.begin_array();
    for (const Element item : simdjson::dom::array(value)) write_moved(item, role, root, json);
    json.end_array();
  } else if (role != SchemaRole::kData && value.is_object()) {
    json.begin_object();
    for (const auto& [key, member] : simdjson::dom::object(value)) {
      json.key(key);
      std::string_view uri;
      if (role == SchemaRole::kSchema && key == "$ref" && !member.get_string().get(uri) &&
          uri.starts_with('#')) {
        json.value(std::string(root) += uri.substr(1));
      } else {
        write_moved(member, grammar::member_role(role, key), root, json);
      }
    }
    json.end_object();
  } else {
    json.raw(simdjson::minify(value));
  }
}

std::string parameters_path(size_t tool_idx) {
  return "#/$defs/" + std::to_string(tool_idx);
}

// Writes the schema of a call of one tool; `parameters` refers to the schema of its parameters.
void write_call_schema(const Tool& tool, std::string_view parameters, const CallKeys& keys,
                       JsonWriter& json) {
  json.begin_object();
  json.field("type", "object");
  json.key("properties");
  json.begin_object();
  json.key(keys.name);
  json.begin_object();
  json.field("type", "string");
  json.key("enum");
  json.begin_array();
  json.value(tool.name);
  json.end_array();
  json.end_object();
  json.key(keys.arguments);
  json.begin_object();
  json.field("$ref", parameters);
  json.end_object();
  json.end_object();
  json.key("required");
  json.begin_array();
  json.value(keys.name);
  json.value(keys.arguments);
  json.end_array();
  json.field("additionalProperties", false);
  json.end_object();
}

// Writes the schema of a tool's parameters with its own definitions: two tools may define the same
// name differently.
void write_parameters(const Tool& tool, size_t tool_idx, JsonWriter& json) {
  const auto document = JsonDocument::parse(tool.parameters, "parameters");
  if (tool.parameters == "{}" || !document.ok()) return json.raw(kAnyObject);
  write_moved(document->root(), SchemaRole::kSchema, parameters_path(tool_idx), json);
}

// Writes "anyOf", the calls of the tools.
void write_choices(std::span<const Tool> tools, const CallKeys& keys, JsonWriter& json) {
  json.key("anyOf");
  json.begin_array();
  for (size_t i = 0; i < tools.size(); ++i) {
    write_call_schema(tools[i], parameters_path(i), keys, json);
  }
  json.end_array();
}

// Writes "$defs", the tools' parameters. Returns their places.
std::vector<ToolSchema> write_definitions(std::span<const Tool> tools, JsonWriter& json) {
  std::vector<ToolSchema> places;
  json.key("$defs");
  json.begin_object();
  for (size_t i = 0; i < tools.size(); ++i) {
    json.key(std::to_string(i));
    write_parameters(tools[i], i, json);
    places.push_back({parameters_path(i), tools[i].name});
  }
  json.end_object();
  return places;
}

}  // namespace

CallSchema call_object_schema(std::span<const Tool> tools, const CallKeys& keys) {
  CallSchema schema;
  JsonWriter json(schema.text);
  json.begin_object();
  write_choices(tools, keys, json);
  schema.tools = write_definitions(tools, json);
  json.end_object();
  return schema;
}

std::string arguments_schema(const Tool& tool) {
  return tool.parameters == "{}" ? std::string(kAnyObject) : tool.parameters;
}

std::string part_of_schema(const Element& part, const Element& root) {
  std::string text = simdjson::minify(part);
  simdjson::dom::object members;
  if (part.get(members) || text.find("\"$ref\"") == std::string::npos) return text;
  text.clear();
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [key, member] : members) {
    if (key == "$defs" || key == "definitions") continue;  // references lead to those of `root`
    std::string_view uri;
    json.key(key);
    if (key == "$ref" && !member.get_string().get(uri) && uri.starts_with('#')) {
      json.value(parameters_path(0) + std::string(uri.substr(1)));
    } else {
      write_moved(member, grammar::member_role(SchemaRole::kSchema, key), parameters_path(0), json);
    }
  }
  json.key("$defs");
  json.begin_object();
  json.key("0");
  write_moved(root, SchemaRole::kSchema, parameters_path(0), json);
  json.end_object();
  json.end_object();
  return text;
}

Restriction forced_call_schema(const ChatRequest& request) {
  Restriction restriction = {.grammar = {.kind = GrammarSpec::Kind::kJsonSchema}, .field = "tools"};
  std::string& out = restriction.grammar.text;
  if (request.tool_choice == ToolChoice::kNamed) {
    for (const Tool& tool : request.tools) {
      if (tool.name == request.named_tool) out = arguments_schema(tool);
    }
    restriction.grammar.tools = {{.path = "#", .tool = request.named_tool}};
    return restriction;
  }
  JsonWriter json(out);
  json.begin_object();
  json.field("type", "array");
  json.field("minItems", 1);
  if (!request.parallel_tool_calls) json.field("maxItems", 1);
  json.key("items");
  json.begin_object();
  write_choices(request.tools, {}, json);
  json.end_object();
  restriction.grammar.tools = write_definitions(request.tools, json);
  json.end_object();
  return restriction;
}

}  // namespace quire::server
