// Reads single members of a request's body without parsing the rest, and Ollama's durations.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace quire::supervisor {

// Returns the text of the first value with this key in the outermost object, such as `"llama"` with
// its quotes; empty: no such key, or the text is no JSON object. A wrong answer for text that is
// no valid JSON is harmless, because the model's process parses the body again and compares names.
std::string_view json_member(std::string_view json, std::string_view key);

// Returns the text of a JSON string; "" for other values.
std::string json_string(std::string_view value);

// Reads a value of keep_alive: seconds, or a string such as "5m" or "1h30m". Negative: forever.
// nullopt: the value is missing or wrong.
std::optional<std::chrono::milliseconds> parse_keep_alive(std::string_view value);

}  // namespace quire::supervisor
