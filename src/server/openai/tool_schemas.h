// JSON schemas that contain the schemas of tools' parameters.
#pragma once

#include <simdjson.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/requests.h"

namespace quire::server {

struct CallKeys {
  std::string_view name = "name";
  std::string_view arguments = "parameters";
};

struct CallSchema {
  std::string text;
  std::vector<ToolSchema> tools;  // where `text` has the parameters of each tool
};

// Returns the schema of an object that calls one of the tools: {"name": …, "parameters": …}.
CallSchema call_object_schema(std::span<const Tool> tools, const CallKeys& keys);

// Returns the schema of a tool's arguments.
std::string arguments_schema(const Tool& tool);

// Returns a part of a schema as a schema of its own. If the part has references, the result
// contains `root` for them.
std::string part_of_schema(const simdjson::dom::element& part, const simdjson::dom::element& root);

}  // namespace quire::server
