// What a command reads besides flags.
#pragma once

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

// A whole file without its byte order mark; "-" is standard input. Refused above 1 GiB.
Result<std::string> read_input(const std::string& path);

}  // namespace quire::cli
