// Text that a user hands to a command: files, pipes, standard input, and JSON lines in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace simdjson::dom {
class element;
}

namespace quire {

class JsonDocument;

// Reads a whole file or pipe without its byte order mark; "-" is standard input. Fails above 1 GiB.
Result<std::string> read_input(const std::string& path);
// The name of a path in messages: "standard input" for "-".
std::string_view input_name(std::string_view path);

// A line of a text. split_lines() skips blank lines.
struct Line {
  std::string_view text;
  size_t number = 0;  // counted from 1 in the whole text
};
std::vector<Line> split_lines(std::string_view text);
// Splits the text at separators into 1 to max_parts parts. The last part is the rest of the text.
std::vector<std::string_view> split(std::string_view text, char separator,
                                    size_t max_parts = std::string_view::npos);
// For example "FILE:3".
std::string line_source(std::string_view path, const Line& line);

// Parses one line as JSON. On failure the error says that `expected` (for example "a JSON string")
// was expected. A duplicate key in an object is an error, as on the server. `source` ("FILE:3")
// starts the message.
Result<JsonDocument> parse_json_line(std::string_view line, std::string_view source,
                                     std::string_view expected, size_t max_depth = 32);

// Reads a JSON list of token ids. The error says what was expected.
Result<std::vector<int32_t>> read_token_ids(simdjson::dom::element value);

}  // namespace quire
