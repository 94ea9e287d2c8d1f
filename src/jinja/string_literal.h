// Literals of template source, with Python's rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "jinja/value.h"

namespace quire::jinja {

// The text of a string literal with its escapes replaced; nullopt if an escape is invalid.
std::optional<std::string> unescape(std::string_view literal);

struct NumberLiteral {
  size_t num_bytes = 0;        // 0: no number begins here
  std::optional<Value> value;  // nullopt: out of range
};
// Reads the number at the start of `text`: 12, 1_000, 0x1f, 0o17, 0b1, 1.5, 2e-3.
NumberLiteral read_number(std::string_view text, bool allow_float);

// Python's int(text, base) and float(text); nullopt where they raise ValueError. Integers beyond 64
// bits fail.
std::optional<int64_t> parse_int(std::string_view text, int base);
std::optional<double> parse_float(std::string_view text);

}  // namespace quire::jinja
