// The tools of a request: functions, tools with free text, and the choice among them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "server/openai/conversation.h"
#include "server/openai/tool_kinds.h"
#include "server/tools/output_parser.h"

namespace quire::server {

FieldError read_function_fields(const Path& path, const simdjson::dom::object& fields,
                                std::string_view parameters_name, std::vector<Tool>& out) {
  Tool tool;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "name", tool.name));
  constexpr size_t kMaxNameBytes = 256;
  const Path name_path(path, "name");
  if (tool.name.empty() || tool.name.size() > kMaxNameBytes) {
    return unexpected(name_path, fields["name"].value_unsafe(),
                      fmt::format("1 to {} bytes of text", kMaxNameBytes));
  }
  if (find_tool(out, tool.name) != nullptr) {
    return field_error(name_path, fmt::format("got '{}' twice, expected a different name for each "
                                              "tool",
                                              clipped(tool.name)));
  }
  tool.parameters = "{}";
  Element parameters;
  if (!fields[parameters_name].get(parameters) && !parameters.is_null()) {
    if (!parameters.is_object()) {
      return unexpected(Path(path, parameters_name), parameters, "a JSON schema: an object");
    }
    tool.parameters = simdjson::to_string(parameters);
  }
  bool is_strict = false;
  if (!fields["strict"].get_bool().get(is_strict)) tool.is_strict = is_strict;
  out.push_back(std::move(tool));
  return {};
}

FieldError check_tools(const ChatRequest& request, const RequestDefaults& defaults) {
  if (request.tool_choice != ToolChoice::kAuto) return {};
  if (defaults.lacks_dialect) {
    return field_error(
        "tools",
        fmt::format("got tools, but the format of the model's tool calls is not known; expected no "
                    "tools, or that the server's setting tool-call-parser names the format: {}. On "
                    "routes with a tool_choice, one that forces or forbids calls works too",
                    fmt::join(tool_call_parser_names(), ", ")));
  }
  if (defaults.has_generic_tools || !template_ignores(defaults, "tools")) return {};
  return field_error(
      "tools",
      "got tools, but the model's chat template does not use them; expected no tools. The "
      "server can write them into the prompt itself if its setting generic-tools is on. On routes "
      "with a tool_choice, one that forces or forbids calls works too");
}

FieldError read_allowed_tools(const Path& path, const simdjson::dom::object& fields,
                              const RequestLimits& limits, const ReadToolName& read_name,
                              ChatRequest& request) {
  std::string mode;
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, fields, "mode", mode));
  if (mode != "auto" && mode != "required") {
    return unexpected(Path(path, "mode"), fields["mode"].value_unsafe(), "'auto' or 'required'");
  }
  const Path tools_path(path, "tools");
  Element list;
  if (fields["tools"].get(list)) return missing(tools_path, "a list of tools");
  simdjson::dom::array tools;
  QUIRE_RETURN_IF_FIELD_ERROR(
      read_list(tools_path, list, static_cast<size_t>(limits.max_tools), tools));
  if (tools.size() == 0) return unexpected(tools_path, list, "at least one tool");
  std::vector<std::string> allowed;
  for (const Element tool : tools) {
    const Path at(tools_path, allowed.size());
    QUIRE_RETURN_IF_FIELD_ERROR(read_name(at, tool, allowed.emplace_back()));
  }
  std::erase_if(request.tools, [&](const Tool& tool) {
    return std::ranges::find(allowed, tool.name) == allowed.end();
  });
  if (mode == "required" && request.tools.empty()) {
    return unexpected(tools_path, list, "at least one tool that this server can offer");
  }
  request.tool_choice = mode == "required"      ? ToolChoice::kRequired
                        : request.tools.empty() ? ToolChoice::kNone
                                                : ToolChoice::kAuto;
  return {};
}

FieldError read_function(const Path& path, Element value, std::string& name,
                         simdjson::dom::object& fields) {
  simdjson::dom::object outer;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, outer));
  Element type;
  std::string_view type_name = "function";
  if (!outer["type"].get(type) && (type.get_string().get(type_name) || type_name != "function")) {
    return unexpected(Path(path, "type"), type, "'function' or 'custom'");
  }
  QUIRE_RETURN_IF_FIELD_ERROR(read_required(path, outer, "function", fields));
  return read_required(Path(path, "function"), fields, "name", name);
}

FieldError read_tools(Element value, const RequestLimits& limits, std::vector<Tool>& out,
                      std::vector<std::string>& ignored) {
  const Path path("tools");
  simdjson::dom::array tools;
  QUIRE_RETURN_IF_FIELD_ERROR(read_list(path, value, static_cast<size_t>(limits.max_tools), tools));
  size_t idx = 0;
  for (const Element tool : tools) {
    const Path at(path, idx++);
    std::string_view type;
    if (!tool["type"].get_string().get(type) && is_hosted_tool(type)) {
      ignore_tool(type, ignored);
      continue;
    }
    if (type == "custom") {
      simdjson::dom::object custom;
      jinja::Value shown;
      QUIRE_RETURN_IF_FIELD_ERROR(read_required(at, simdjson::dom::object(tool), "custom", custom));
      QUIRE_RETURN_IF_FIELD_ERROR(read_custom_tool(Path(at, "custom"), custom, out, shown));
      continue;
    }
    simdjson::dom::object function;
    std::string name;
    QUIRE_RETURN_IF_FIELD_ERROR(read_function(at, tool, name, function));
    QUIRE_RETURN_IF_FIELD_ERROR(
        read_function_fields(Path(at, "function"), function, "parameters", out));
  }
  return {};
}

const Tool* find_tool(std::span<const Tool> tools, std::string_view name) {
  const auto found = std::ranges::find(tools, name, &Tool::name);
  return found == tools.end() ? nullptr : &*found;
}

}  // namespace quire::server
