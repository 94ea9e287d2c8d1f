// Writes the responses to POST /api/chat and /api/generate: one JSON object, or a stream of them,
// one per line.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/ollama_api/ollama_request.h"
#include "server/openai/response_writer.h"

namespace quire::server {

// The properties of a request that its response depends on.
struct OllamaReply {
  OllamaUse use = OllamaUse::kChat;
  std::string model = {};  // as the client names it
  bool is_stream = true;
  bool shows_thinking = true;
  std::optional<int> num_logprobs = {};  // likely tokens of each position; absent: no logprobs
  std::chrono::steady_clock::time_point arrived = {};
};

// Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_ollama_writer(OllamaReply reply, ResponseInfo info);

// Returns the response to a request without a prompt: reason is "load", or "unload" after the model
// was unloaded.
std::string ollama_without_prompt(OllamaUse use, std::string_view model, std::string_view reason);

// The version of Ollama whose API these routes follow. Clients compare it with the version that
// they require.
inline constexpr std::string_view kOllamaVersion = "0.12.11";
// The date in the far future by which clients recognize a model that never expires.
inline constexpr std::string_view kOllamaNever = "2300-01-01T00:00:00Z";

// Ollama's names end in a tag, by default "latest".
std::string tagged_name(const std::string& name);

}  // namespace quire::server
