// The body of POST /v1/messages, Anthropic's Messages API, and its translation into a conversation.
#pragma once

#include <string_view>
#include <vector>

#include "server/openai/requests.h"

namespace quire::server {

// The route that the body is for: /v1/messages/count_tokens needs no max_tokens.
enum class MessagesUse { kGenerate, kCountTokens };

// Parses a body like parse_chat_request(). Consecutive messages of one role become one message. If
// the last message is the assistant's, the response continues it. Without `thinking`, templates
// that can switch reasoning off do so, and the response shows no reasoning.
Parsed<ChatRequest> parse_messages_request(std::string_view body, const RequestDefaults& defaults,
                                           MessagesUse use);

// Returns the descriptions of these bodies.
std::vector<ObjectSchema> messages_schemas();

}  // namespace quire::server
