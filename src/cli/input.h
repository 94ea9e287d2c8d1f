// The input of commands: typed lines, piped texts, and JSON lines of requests, texts and ids.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_input.h"
#include "quire/request.h"
#include "quire/status.h"

namespace quire::cli {

// Largest typed or pasted message.
constexpr size_t kMaxTypedBytes = size_t{1} << 20;

// Returns the next line of standard input without its line end; nullopt at the end. Fails above
// kMaxTypedBytes.
Result<std::optional<std::string>> read_typed_line();

// Returns the text of a pipe, socket or redirected file on standard input; nullopt for other
// inputs, such as /dev/null and a terminal. If no text arrives within 1 s, prints that `command`
// waits for `text_name`.
Result<std::optional<std::string>> read_piped_text(std::string_view command,
                                                   std::string_view text_name);

// Returns whether standard input is a pipe, socket or file with unread bytes. Does not wait for
// them.
bool has_unread_input();

// Parses {"prompt": "…"} or {"prompt_token_ids": [1, 2]}. vLLM's sampling fields beside them
// override `defaults`. Unknown fields and wrong types fail; `source` ("FILE:3") starts the message.
Result<Request> parse_request(std::string_view line, std::string_view source,
                              const Request& defaults);

// A prompt, or the error of its line. A bad line does not affect the other prompts.
struct Prompt {
  Request request = {};
  std::string source = {};  // "FILE:3"; empty: from a flag
  Status error = {};
  bool in_template = false;  // becomes a user's message in the model's chat template
};

std::vector<Prompt> prompts_from_lines(std::string_view text, std::string_view path,
                                       const Request& defaults);

// Parse a line with a JSON string, or with a JSON array of token ids.
Result<std::string> parse_text_line(std::string_view line, std::string_view source);
Result<std::vector<int32_t>> parse_ids_line(std::string_view line, std::string_view source);

}  // namespace quire::cli
