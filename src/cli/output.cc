#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <fstream>

namespace quire::cli {
namespace {

// The first failure; the stream itself remembers only that there was one.
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

Status write_output_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) return invalid_argument(fmt::format("[file] cannot write {}", path));
  return {};
}

}  // namespace quire::cli
