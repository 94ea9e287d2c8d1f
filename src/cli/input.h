// Input of a command other than its flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

// A line of a text. split_lines() skips blank lines.
struct Line {
  std::string_view text;
  size_t number = 0;  // counted from 1 in the whole text
};
std::vector<Line> split_lines(std::string_view text);
// The name of a path in messages: "standard input" for "-".
std::string_view input_name(std::string_view path);
// For example "FILE:3".
std::string line_source(std::string_view path, const Line& line);

// The next line of standard input without its line end; nullopt at the end. Fails above 1 MiB.
Result<std::optional<std::string>> read_typed_line();

// A whole file or pipe without its byte order mark; "-" is standard input. Fails above 1 GiB.
Result<std::string> read_input(const std::string& path);

}  // namespace quire::cli
