#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.h"
#include "base/text.h"
#include "base/text_input.h"
#include "cli/interrupt.h"

namespace quire::cli {
namespace {

// The errno of the first failed write. The stream itself records only that a write failed.
int stdout_errno = 0;

bool are_messages_logged = false;

bool remember_failure(bool written) {
  if (!written && stdout_errno == 0) stdout_errno = errno != 0 ? errno : EIO;
  return written;
}

}  // namespace

void append_stdout(std::string_view text) {
  errno = 0;
  remember_failure(std::fwrite(text.data(), 1, text.size(), stdout) == text.size());
}

bool write_stdout(std::string_view text) {
  append_stdout(text);
  return finish_stdout() == 0;
}

int finish_stdout() {
  errno = 0;
  remember_failure(std::fflush(stdout) == 0 && std::ferror(stdout) == 0);
  return stdout_errno;
}

void log_messages(bool are_logged) {
  are_messages_logged = are_logged;
}

bool logs_messages() {
  return are_messages_logged;
}

void write_stderr(std::string_view text) {
  if (are_messages_logged && text.ends_with('\n')) {
    for (const Line& line : split_lines(text)) log_line(LogLevel::kWarning, line.text);
    return;
  }
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string escape_controls(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const std::string_view bytes = text.substr(0, static_cast<size_t>(c.num_bytes));
    const bool is_control = (c.code_point < 0x20 && c.code_point != '\n' && c.code_point != '\t') ||
                            (c.code_point >= 0x7f && c.code_point < 0xa0);
    out += is_control || !c.valid ? one_line(bytes) : std::string(bytes);
    text.remove_prefix(bytes.size());
  }
  return out;
}

std::string shown(std::string_view text) {
  static const bool is_terminal = ::isatty(STDOUT_FILENO) == 1;
  return is_terminal ? escape_controls(text) : std::string(text);
}

size_t terminal_columns(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

Status write_output_file(const std::string& path, std::string_view text) {
  if (path.empty()) return {};
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int error = written ? 0 : errno;
  if (file != nullptr && std::fclose(file) != 0 && written) {
    written = false;
    error = errno;
  }
  if (written) return {};
  return invalid_argument(fmt::format("[file] cannot write {}; {}", path, std::strerror(error)));
}

Progress::Progress(std::string label)
    : label_(std::move(label)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      last_shown_(Clock::now()) {}

void Progress::clear() {
  if (is_shown_) print_stderr("\r\033[K");
  is_shown_ = false;
}

void Progress::update(size_t num_done, size_t num_total, const std::function<std::string()>& note) {
  if (num_done >= num_total) return clear();
  const Clock::time_point now = Clock::now();
  const auto pause = is_terminal_ ? std::chrono::milliseconds(100) : std::chrono::seconds(10);
  if (now - last_shown_ < pause) return;
  last_shown_ = now;
  if (!is_terminal_) {
    return print_stderr("{}: {} of {} {}\n", label_, num_done, num_total, note());
  }
  is_shown_ = true;
  const std::string line = progress_line(label_, num_done, num_total, note());
  print_stderr("\r{}\033[K", first_columns(line, terminal_columns(STDERR_FILENO)));
  std::fflush(stderr);
}

bench::Hooks measurement_hooks(Progress& progress) {
  return {.interrupted = CancelScope::interrupted,
          .on_progress = [&progress](size_t num_done, size_t num_total, const auto& note) {
            progress.update(num_done, num_total, note);
          }};
}

std::string_view first_columns(std::string_view text, size_t num_columns) {
  size_t at = 0;
  for (size_t column = 0; column + 1 < num_columns && at < text.size(); ++column) {
    at += static_cast<size_t>(decode_utf8(text.substr(at)).num_bytes);
  }
  return text.substr(0, at);
}

std::string progress_line(std::string_view label, size_t done, size_t total,
                          std::string_view note) {
  constexpr size_t kWidth = 30;
  const double share =
      total == 0 ? 1.0 : static_cast<double>(std::min(done, total)) / static_cast<double>(total);
  const auto filled = static_cast<size_t>(share * kWidth);
  return fmt::format("{} [{:#>{}}{:->{}}] {:3.0f}% {}/{}{}{}", label, "", filled, "",
                     kWidth - filled, share * 100.0, done, total, note.empty() ? "" : " ", note);
}

}  // namespace quire::cli
