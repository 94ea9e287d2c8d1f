// The types of a tool's arguments, for notations that write every value as plain text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace quire::server {

// A set of JSON types. Empty: the schema does not restrict the type.
struct ArgumentTypes {
  enum Type : uint8_t {
    kString = 1,
    kInteger = 2,
    kNumber = 4,
    kBoolean = 8,
    kNull = 16,
    kObject = 32,
    kArray = 64,
  };
  uint8_t bits = 0;

  bool has(Type type) const { return (bits & type) != 0; }
  // Returns whether every text is a string value.
  bool is_text() const { return bits == 0 || bits == kString; }
};

// Returns the types of the schema's properties. Reads type, enum, const, anyOf, oneOf, allOf,
// nullable and local references. A schema that cannot be read has no types.
std::map<std::string, ArgumentTypes, std::less<>> argument_types(std::string_view schema);

// Returns the JSON of a value that was written as plain text. A number keeps its digits. A text
// that matches none of the types becomes a string.
std::string typed_value(std::string_view text, ArgumentTypes types);

// Returns the value as JSON if it is one whole object or array in JSON or Python notation, with
// slips repaired; otherwise "".
std::string container_value(std::string_view text);

}  // namespace quire::server
