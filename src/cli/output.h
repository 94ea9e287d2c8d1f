// Output of commands. Nothing here throws: a full disk or a closed pipe is an error to return, not
// a crash.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "quire/status.h"

namespace quire::cli {

// Writes to standard output at once. Returns false if the pipe is closed or the write fails.
bool write_stdout(std::string_view text);
// Appends to the buffer of standard output; finish_stdout() reports whether all of it was written.
void append_stdout(std::string_view text);
// A model's text as written to standard output. On a terminal, control characters other than \n and
// \t are escaped so that the terminal does not act on them; a file or pipe gets the text as it is.
std::string shown(std::string_view text);
std::string escape_controls(std::string_view text);
// Flushes the buffer. Returns the errno of the first failed write, or 0.
int finish_stdout();

// Writes a message to the user. If standard error is closed or full, the message is lost.
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
