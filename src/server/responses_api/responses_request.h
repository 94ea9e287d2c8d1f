// The body of POST /v1/responses, OpenAI's Responses API, and its translation into a conversation.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/openai/requests.h"

namespace quire::server {

// Upper bound on the bytes of the fields that a response repeats. A stream begins with two copies
// of them, which must leave space for its other events in http::Limits::max_buffered_bytes.
inline constexpr size_t kMaxRepeatedBytes = size_t{384} << 10;

// The JSON text of an item, which the responses of a conversation share.
using ItemText = std::shared_ptr<const std::string>;

struct ResponsesRequest {
  ChatRequest chat;
  // The fields that the response repeats, as JSON.
  std::string instructions = "null";
  std::string max_output_tokens = "null";
  std::string metadata = "{}";
  std::string reasoning = R"({"effort":null,"summary":null})";
  std::string text = R"({"format":{"type":"text"}})";
  std::string tool_choice = R"("auto")";
  std::string tools = "[]";
  int top_logprobs = 0;
  std::string previous_response_id;  // empty: none
  bool stores = false;               // the response is kept for later requests
  bool shows_encrypted_reasoning = false;
  // The conversation before the response, as items with an id; only if `stores`.
  std::vector<ItemText> items;
};

// A response that is kept for later requests.
struct StoredResponse {
  std::vector<ItemText> items;  // the conversation before it, without instructions
  std::vector<ItemText> output;
  std::string body;  // the whole response
};

// The responses that the caller of a request may continue.
struct StoredResponses {
  bool is_enabled = false;
  // Returns null if there is no such response, or if it is another key's.
  std::function<std::shared_ptr<const StoredResponse>(std::string_view id)> find = nullptr;
};

// Parses a body like parse_chat_request(). The reasoning, text and calls of one turn become one
// message of the assistant. The system and developer messages at the start become one message,
// since most templates accept only one.
Parsed<ResponsesRequest> parse_responses_request(std::string_view body,
                                                 const RequestDefaults& defaults,
                                                 const StoredResponses& stored);

// Returns the description of this body.
std::vector<ObjectSchema> responses_schemas();

// `encrypted_content` of a reasoning item is this prefix and the item's text, because some clients
// do not send the item's content back. It is not encrypted.
inline constexpr std::string_view kReasoningPrefix = "quire-plain:";

}  // namespace quire::server
