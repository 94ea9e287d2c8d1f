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
// Appends to the buffer of standard output; finish_stdout() reports a failed write.
void append_stdout(std::string_view text);
// Returns a model's text in the form for standard output. For a terminal, escapes control
// characters other than \n and \t, so that the terminal does not execute them; a file or pipe gets
// the text unchanged.
std::string shown(std::string_view text);
std::string escape_controls(std::string_view text);
// Flushes the buffer. Returns the errno of the first failed write, or 0.
int finish_stdout();

// Writes a message to the user. If standard error is closed or full, the message is lost.
void write_stderr(std::string_view text);
// Makes write_stderr() log whole lines as warnings, so that a log in JSON has no plain lines
// between its own.
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

// Returns the columns of the terminal at this descriptor; 80 if unknown.
size_t terminal_columns(int fd);

// Writes a file. An empty path means that no file is wanted.
Status write_output_file(const std::string& path, std::string_view text);

// Shows a progress bar on standard error if that is a terminal, otherwise a line every 10 s. Shows
// nothing if the work ends before the first update is due.
class Progress {
 public:
  explicit Progress(std::string label);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Draws the bar and `note` at most ten times per second; calls `note` only then. Clears the line
  // once the work is done.
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

// Returns the start of a line that fits into a terminal of this width, without its last column.
std::string_view first_columns(std::string_view text, size_t num_columns);
// Returns a line such as "label [#####-----] 50% 5/10 note".
std::string progress_line(std::string_view label, size_t done, size_t total, std::string_view note);

}  // namespace quire::cli
