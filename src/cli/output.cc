#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/text.h"

namespace quire::cli {
namespace {

// errno of the first failure, because the stream only records that one happened.
int stdout_errno = 0;

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

void write_stderr(std::string_view text) {
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

Status write_output_file(const std::string& path, std::string_view text) {
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

}  // namespace quire::cli
