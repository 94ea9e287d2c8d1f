// What a command reads and writes besides flags.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire::cli {

// The lines of a text, blank ones left out, each with where it stood ("FILE line 3").
struct Line {
  std::string_view text;
  size_t number = 0;  // from 1
};
std::vector<Line> split_lines(std::string_view text);
std::string line_source(std::string_view path, const Line& line);

// A whole file; "-" is standard input. Refused above 1 GiB.
Result<std::string> read_input(const std::string& path);

Status write_output_file(const std::string& path, std::string_view text);

// Writes to standard output at once; false when nobody reads any more (a closed pipe).
bool write_stdout(std::string_view text);

}  // namespace quire::cli
