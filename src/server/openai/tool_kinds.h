// Tools that are not functions: hosted tools, which OpenAI or Anthropic define or run, and custom
// tools, whose input is free text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"
#include "server/openai/json_fields.h"
#include "server/openai/requests.h"

namespace quire::server {

// Whether this is the type of a hosted tool, with or without a version: "web_search",
// "web_search_20250305". This server cannot offer or run hosted tools, so they are left out of the
// prompt.
bool is_hosted_tool(std::string_view type);
// Calls ignore_part() for a tool.
void ignore_tool(std::string_view type, std::vector<std::string>& ignored);

// A tool whose input is free text is offered as a function with one text argument.
inline constexpr std::string_view kCustomArgument = "input";
// Reads {"name", "description", "format"} into a tool and its value for the template.
FieldError read_custom_tool(const Path& path, const simdjson::dom::object& fields,
                            std::vector<Tool>& out, jinja::Value& shown);
// Returns the arguments of a custom tool's call in a history.
jinja::Value custom_arguments(std::string_view input, uint32_t owner = 0);
// Returns the input of a custom tool's call: the argument kCustomArgument, or all of `arguments` if
// that argument is missing.
std::string custom_input(std::string_view arguments);
// Whether this name is one of a custom tool of the request.
bool is_custom_tool(const ChatRequest& request, std::string_view name);

// Returns a hosted tool's result as JSON text, without the members that only the tool's owner can
// read ("encrypted_content").
std::string readable_json(Element value);

}  // namespace quire::server
