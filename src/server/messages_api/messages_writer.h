// Writes the response to POST /v1/messages: one message, or a stream of typed events.
#pragma once

#include <memory>

#include "server/openai/response_writer.h"

namespace quire::server {

// The response's id is "msg_…". Fails if a parser's name is unknown.
Result<std::unique_ptr<ResponseWriter>> make_messages_writer(ChatRequest request,
                                                             ResponseInfo info);

}  // namespace quire::server
