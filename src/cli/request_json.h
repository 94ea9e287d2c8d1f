// JSON input of `generate`: one request per line.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "quire/request.h"
#include "quire/status.h"

namespace quire::cli {

// Limits on one line of JSON input.
constexpr JsonLimits kLineLimits = {.max_bytes = size_t{64} << 20, .max_depth = 32};

// Parses {"prompt": "…"} or {"prompt_token_ids": [1, 2]}. vLLM's sampling fields beside them
// override `defaults`. Unknown fields and wrong types fail; `source` ("FILE:3") starts the message.
Result<Request> parse_request(std::string_view line, std::string_view source,
                              const Request& defaults);

// Parses one line as JSON. On failure the error says that `expected` (for example "a JSON string")
// was expected. A duplicate key in an object is an error, as on the server.
Result<JsonDocument> parse_line(std::string_view line, std::string_view source,
                                std::string_view expected);

// Parse a JSON string, and a JSON array of token ids.
Result<std::string> parse_text_line(std::string_view line, std::string_view source);
Result<std::vector<int32_t>> parse_ids_line(std::string_view line, std::string_view source);

}  // namespace quire::cli
