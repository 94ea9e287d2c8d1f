#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

#include "base/utf8.h"

namespace quire::cli {
namespace {

// The first failure; the stream itself remembers only that there was one.
int stdout_errno = 0;

bool remember_failure(bool written) {
  if (!written && stdout_errno == 0) stdout_errno = errno != 0 ? errno : EIO;
  return written;
}

bool is_control(char32_t c) {
  constexpr char32_t kLineSeparator = 0x2028;
  constexpr char32_t kParagraphSeparator = 0x2029;
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == kLineSeparator || c == kParagraphSeparator;
}

void append_escaped(char32_t c, std::string& out) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else {
    const auto code = static_cast<uint32_t>(c);
    out += c < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
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

void write_stderr(std::string_view text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string one_line(std::string_view text) {
  constexpr size_t kMaxBytes = 2048;
  std::string line;
  while (!text.empty()) {
    if (line.size() >= kMaxBytes) return line + "…";
    const Utf8Char c = decode_utf8(text);
    if (is_control(c.code_point)) {
      append_escaped(c.code_point, line);
    } else {
      append_utf8(c.code_point, line);
    }
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  return line;
}

Status write_output_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return invalid_argument(fmt::format("[file] cannot write {}", path));
  return {};
}

}  // namespace quire::cli
