#include <simdjson.h>

#include <map>

#include "base/json.h"
#include "server/openai/json_text.h"
#include "server/openai/parse.h"

namespace quire::server {
namespace {

// Parameters without their definitions, which references name from the root of the whole schema:
// "#/$defs/…". Two tools' definitions of one name are taken for the same.
std::string without_definitions(const std::string& parameters,
                                std::map<std::string, std::string>& definitions) {
  const auto document = JsonDocument::parse(parameters, "parameters");
  simdjson::dom::object fields;
  if (!document.ok() || document->root().get_object().get(fields)) return parameters;
  std::string out = "{";
  for (const auto& [name, value] : fields) {
    simdjson::dom::object defined;
    if (name == "$defs" && !value.get_object().get(defined)) {
      for (const auto& [key, schema] : defined) {
        definitions.emplace(key, simdjson::to_string(schema));
      }
      continue;
    }
    if (out.size() > 1) out += ',';
    append_string(name, out);
    out += ':';
    out += simdjson::to_string(value);
  }
  return out + "}";
}

}  // namespace

StructuredOutput forced_call_schema(const ChatCall& call) {
  StructuredOutput output = {.kind = StructuredOutput::Kind::kJsonSchema, .field = "tools"};
  if (call.tool_choice == ToolChoice::kNamed) {
    for (const Tool& tool : call.tools) {
      if (tool.name == call.named_tool) output.text = tool.parameters;
    }
    if (output.text == "{}") output.text = R"({"type":"object"})";
    return output;
  }
  std::map<std::string, std::string> definitions;
  std::string& out = output.text;
  out = R"({"type":"array","minItems":1,)";
  if (!call.parallel_tool_calls) out += R"("maxItems":1,)";
  out += R"("items":{"anyOf":[)";
  for (const Tool& tool : call.tools) {
    if (&tool != call.tools.data()) out += ',';
    out += R"({"type":"object","properties":{"name":{"type":"string","enum":[)";
    append_string(tool.name, out);
    out += R"(]},"parameters":)";
    out += tool.parameters == "{}" ? R"({"type":"object"})"
                                   : without_definitions(tool.parameters, definitions);
    out += R"(},"required":["name","parameters"],"additionalProperties":false})";
  }
  out += "]}";
  for (auto it = definitions.begin(); it != definitions.end(); ++it) {
    out += it == definitions.begin() ? ",\"$defs\":{" : ",";
    append_string(it->first, out);
    out += ':';
    out += it->second;
  }
  out += definitions.empty() ? "}" : "}}";
  return output;
}

}  // namespace quire::server
