// The schemas that tools' parameters are parts of.
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
  std::vector<ToolSchema> tools;  // the places of the tools' parameters
};

// Returns the schema of an object that calls one of the tools: {"name": …, "parameters": …}.
CallSchema call_object_schema(std::span<const Tool> tools, const CallKeys& keys);

// Returns the schema of a tool's arguments.
std::string arguments_schema(const Tool& tool);

// Returns a part of a schema as a schema of its own. It has the whole one for its references.
std::string part_of_schema(const simdjson::dom::element& part, const simdjson::dom::element& root);

}  // namespace quire::server
