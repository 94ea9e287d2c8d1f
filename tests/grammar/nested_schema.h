// Schemas with required properties that `properties` does not name. Such a property has the schema
// of `additionalProperties`.
#pragma once

#include <string>

namespace quire::testing {

// `num_levels` objects in each other, each with the required names "p0", "p1" and so on; strings
// are innermost.
inline std::string nested_schema(int num_levels, int num_required) {
  std::string required;
  for (int i = 0; i < num_required; ++i) {
    required += (i > 0 ? ",\"p" : "\"p") + std::to_string(i) + '"';
  }
  std::string schema = R"({"type":"string"})";
  for (int level = 0; level < num_levels; ++level) {
    schema = R"({"type":"object","required":[)" + required + R"(],"additionalProperties":)" +
             schema + '}';
  }
  return schema;
}

// One object with `num_required` names and a schema of additional properties of about `rest_bytes`.
inline std::string wide_schema(int num_required, size_t rest_bytes) {
  std::string values = "0";
  for (int i = 1; values.size() < rest_bytes; ++i) values += ",\"value " + std::to_string(i) + '"';
  std::string required = "\"0\"";
  for (int i = 1; i < num_required; ++i) required += ",\"" + std::to_string(i) + '"';
  return R"({"type":"object","required":[)" + required + R"(],"additionalProperties":{"enum":[)" +
         values + "]}}";
}

}  // namespace quire::testing
