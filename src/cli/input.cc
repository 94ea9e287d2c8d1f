#include "cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace quire::cli {
namespace {

constexpr size_t kMaxInputBytes = size_t{1} << 30;
constexpr size_t kMaxTypedBytes = size_t{1} << 20;

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

Result<std::optional<std::string>> read_typed_line() {
  std::string line;
  errno = 0;
  for (int c = std::getc(stdin); c != '\n'; c = std::getc(stdin)) {
    if (c == EOF && std::ferror(stdin) != 0) {
      return invalid_argument(
          fmt::format("[input] cannot read standard input; {}", std::strerror(errno)));
    }
    if (c == EOF && line.empty()) return std::optional<std::string>();
    if (c == EOF) break;
    if (line.size() == kMaxTypedBytes) {
      return invalid_argument(
          fmt::format("[input] a line of standard input is too long; expected at most {} bytes",
                      kMaxTypedBytes));
    }
    line += static_cast<char>(c);
  }
  return std::optional(std::move(line));
}

Result<std::string> read_input(const std::string& path) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  QUIRE_ASSIGN_OR_RETURN(std::string text,
                         path == "-" ? read_to_end(STDIN_FILENO, input_name(path), kMaxInputBytes)
                                     : read_file_or_pipe(path, kMaxInputBytes));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace quire::cli
