#include "base/text_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace quire {

Result<std::string> read_input(const std::string& path) {
  constexpr size_t kMaxInputBytes = size_t{1} << 30;
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  QUIRE_ASSIGN_OR_RETURN(std::string text,
                         path == "-" ? read_to_end(STDIN_FILENO, input_name(path), kMaxInputBytes)
                                     : read_file_or_pipe(path, kMaxInputBytes));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

std::string_view input_name(std::string_view path) {
  return path == "-" ? "standard input" : path;
}

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

std::vector<std::string_view> split(std::string_view text, char separator, size_t max_parts) {
  std::vector<std::string_view> parts;
  while (parts.size() + 1 < max_parts) {
    const size_t end = text.find(separator);
    if (end == std::string_view::npos) break;
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

std::string line_source(std::string_view path, const Line& line) {
  return fmt::format("{}:{}", input_name(path), line.number);
}

Result<JsonDocument> parse_json_line(std::string_view line, std::string_view source,
                                     std::string_view expected, size_t max_depth) {
  const JsonLimits limits = {.max_bytes = size_t{64} << 20, .max_depth = max_depth};
  auto document = JsonDocument::parse(line, source, limits);
  if (document.status().code() == StatusCode::kInvalidArgument) {
    return invalid_argument(fmt::format(
        "[input] {}: got '{}', expected {} (valid JSON of at most {} MiB and {} levels)", source,
        clipped(line), expected, limits.max_bytes >> 20, limits.max_depth));
  }
  if (!document.ok()) return document;
  const auto repeated = find_nested_repeated_key(document->root());
  if (!repeated) return document;
  return invalid_argument(fmt::format("[input] {}: got the key {} twice, expected it once", source,
                                      repeated->substr(1)));
}

Result<std::vector<int32_t>> read_token_ids(simdjson::dom::element value) {
  simdjson::dom::array items;
  if (value.get_array().get(items)) return invalid_argument("expected a list of token ids");
  std::vector<int32_t> ids;
  ids.reserve(items.size());
  for (const simdjson::dom::element item : items) {
    int64_t id = 0;
    if (item.get_int64().get(id) || id < 0 || id > INT32_MAX) {
      return invalid_argument("expected token ids, integers of at least 0");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

}  // namespace quire
