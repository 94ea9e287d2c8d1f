// The bodies of POST /api/chat, /api/generate, /api/show and /api/pull, Ollama's API, and the
// translation of the first two into a conversation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/requests.h"

namespace quire::server {

// The route that a body is for.
enum class OllamaUse { kChat, kGenerate };

// The properties of the served model against which a body is checked.
struct OllamaModel {
  int max_model_len = 0;  // tokens
  bool reasons = false;   // the server separates its reasoning from its text
};

struct OllamaRequest {
  // Without raw_prompt, `chat` has the conversation.
  ChatRequest chat;
  // The prompt of a request with `raw`; no template renders it. `chat` has the other fields.
  std::optional<std::string> raw_prompt;
  // The body has no prompt and no message: Ollama's clients load a model in this way. Nothing is
  // generated.
  bool only_loads = false;
  // only_loads, and keep_alive is 0, by which Ollama unloads the model. `chat.ignored` names it.
  bool unloads = false;
};

// Parses a body like parse_chat_request(), except that it streams by default. Each of Ollama's
// options is honoured, has no effect on the text here, or is refused by name; an unknown option is
// refused too. If the last message of a chat is the assistant's and has text, the response
// continues it.
Parsed<OllamaRequest> parse_ollama_request(std::string_view body, const RequestDefaults& defaults,
                                           OllamaUse use, const OllamaModel& model);

// Returns the name of the model that the body of /api/show asks for; "" if it names none.
Parsed<std::string> parse_ollama_show(std::string_view body, const RequestLimits& limits);

// The body of POST /api/pull.
struct OllamaPull {
  std::string model = {};
  bool is_stream = true;
};
Parsed<OllamaPull> parse_ollama_pull(std::string_view body, const RequestLimits& limits);

// Returns the descriptions of these bodies.
std::vector<ObjectSchema> ollama_schemas();

}  // namespace quire::server
