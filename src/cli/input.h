// What a command reads besides flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

// The lines of a text, blank ones left out, each with where it stood.
struct Line {
  std::string_view text;
  size_t number = 0;  // from 1
};
std::vector<Line> split_lines(std::string_view text);
// How messages name a path: "-" is standard input.
std::string_view input_name(std::string_view path);
// "FILE:3"
std::string line_source(std::string_view path, const Line& line);

// The next line of standard input without its end, or nothing behind the last. Refused above 1 MiB.
Result<std::optional<std::string>> read_typed_line();

// A whole file or pipe without its byte order mark; "-" is standard input. Refused above 1 GiB.
Result<std::string> read_input(const std::string& path);

}  // namespace quire::cli
