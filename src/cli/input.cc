#include "cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"

namespace quire::cli {
namespace {

constexpr size_t kMaxInputBytes = size_t{1} << 30;

Result<std::string> read_stdin() {
  std::string text;
  std::string chunk(size_t{1} << 16, '\0');
  while (true) {
    const ssize_t got = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return invalid_argument(
          fmt::format("[input] cannot read standard input; {}", std::strerror(errno)));
    }
    if (got == 0) return text;
    text.append(chunk, 0, static_cast<size_t>(got));
    if (text.size() > kMaxInputBytes) {
      return invalid_argument(fmt::format(
          "[input] standard input is too large; expected at most {} bytes", kMaxInputBytes));
    }
  }
}

}  // namespace

std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  size_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) lines.push_back({line, number});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view input_name(std::string_view path) {
  return path == "-" ? "standard input" : path;
}

std::string line_source(std::string_view path, const Line& line) {
  return fmt::format("{}:{}", input_name(path), line.number);
}

Result<std::string> read_input(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  QUIRE_ASSIGN_OR_RETURN(std::string text,
                         path == "-" ? read_stdin() : read_file(path, kMaxInputBytes));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace quire::cli
