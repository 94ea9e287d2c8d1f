// Output of commands: standard output and error, files, and the progress bar. Nothing here throws:
// a full disk or a closed pipe is an error to return, not a crash.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "bench/measurement.h"
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
// From here on, whole lines for write_stderr() become warnings of the log: a log in JSON has no
// plain lines beside it.
void log_messages(bool are_logged);
bool logs_messages();

template <typename... Args>
void print_stdout(fmt::format_string<Args...> format, Args&&... args) {
  append_stdout(fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print_stderr(fmt::format_string<Args...> format, Args&&... args) {
  write_stderr(fmt::format(format, std::forward<Args>(args)...));
}

// The columns of the terminal at this descriptor; 80 if unknown.
size_t terminal_columns(int fd);

// Writes nothing if the path is empty.
Status write_output_file(const std::string& path, std::string_view text);

// A progress bar on standard error if that is a terminal, otherwise a line every 10 s. Shows
// nothing if the work ends soon.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws at most ten times per second, with the note after the bar; evaluates `note` only then.
  // Clears the line once the work is done.
  void update(size_t num_done, size_t num_total, const std::function<std::string()>& note);

 private:
  using Clock = std::chrono::steady_clock;

  void clear();

  std::string label_;
  bool is_terminal_;
  bool is_shown_ = false;
  Clock::time_point last_shown_;
};

// Shows the progress of a measurement, and ends it at an interrupt inside a CancelScope.
bench::Hooks measurement_hooks(Progress& progress);

// The start of a line that fits into a terminal of this width, without its last column.
std::string_view first_columns(std::string_view text, size_t num_columns);
// For example "label [#####-----] 50% 5/10 note".
std::string progress_line(std::string_view label, size_t done, size_t total, std::string_view note);

}  // namespace quire::cli
