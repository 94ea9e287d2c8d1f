// Writes the responses to POST /api/chat, /api/generate and /api/pull: one JSON object, or a stream
// of them, one per line.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/ollama_api/ollama_request.h"
#include "server/openai/api_error.h"
#include "server/openai/requests.h"
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
  std::chrono::nanoseconds load_time = {};  // before the request arrived
};

// The header by which the supervisor reports to a model's process how many nanoseconds a request
// waited until this process was ready.
inline constexpr std::string_view kLoadTimeField = "x-quire-load-ns";

// Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_ollama_writer(OllamaReply reply, ResponseInfo info);

// Returns the response to a request without a prompt: reason is "load", or "unload" after the model
// was unloaded.
std::string ollama_without_prompt(OllamaUse use, std::string_view model, std::string_view reason);

struct OllamaPulled {
  std::string body = {};
  std::string content_type = {};
};
// Makes the response to POST /api/pull, which scripts send before they use a model. A served model
// needs no download; any other name is an error, which lists the `names` of the served models.
std::optional<ApiError> pull_for_ollama(std::string_view body, const RequestLimits& limits,
                                        std::string_view names,
                                        const std::function<bool(std::string_view)>& is_served,
                                        OllamaPulled& out);

// The media type of streams.
inline constexpr const char* kOllamaStreamType = "application/x-ndjson";
// The version of Ollama whose API these routes follow. Clients compare it with the version that
// they require.
inline constexpr std::string_view kOllamaVersion = "0.12.11";
// A date in the far future, which clients read as never: the model is not unloaded.
inline constexpr std::string_view kOllamaNever = "2300-01-01T00:00:00Z";

// Adds Ollama's default tag, ":latest", to a name without a tag.
std::string tagged_name(const std::string& name);

}  // namespace quire::server
