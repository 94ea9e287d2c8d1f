// What a command writes. Nothing here throws: a full disk or a closed pipe is an answer, not a
// crash.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/one_line.h"
#include "quire/status.h"

namespace quire::cli {

// Writes to standard output at once; false when nobody reads any more (a closed pipe) or nothing
// can be written.
bool write_stdout(std::string_view text);
// The same, but it may wait in the buffer; finish_stdout tells whether it arrived.
void append_stdout(std::string_view text);
// A model's text as standard output gets it: a terminal must not obey it, so control characters but
// \n and \t are escaped there; a file or pipe gets it as it is.
std::string shown(std::string_view text);
std::string escape_controls(std::string_view text);
// Writes out the buffer. Why standard output is not complete, or 0: an errno value.
int finish_stdout();

// Messages to the user. Where standard error is closed or full they are lost, and that is all.
void write_stderr(std::string_view text);

template <typename... Args>
void print_stdout(fmt::format_string<Args...> format, Args&&... args) {
  append_stdout(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print_stderr(fmt::format_string<Args...> format, Args&&... args) {
  write_stderr(fmt::format(format, std::forward<Args>(args)...));
}

Status write_output_file(const std::string& path, std::string_view text);

}  // namespace quire::cli
