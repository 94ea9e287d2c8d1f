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

// Returns the response to a request that only loads the model. The model is always loaded.
std::string ollama_loaded(OllamaUse use, std::string_view model);

}  // namespace quire::server
