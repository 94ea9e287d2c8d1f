// Converts the messages of a conversation to the form that chat templates expect.
#pragma once

#include <string>

#include "server/openai/conversation.h"

namespace quire::server {

// Appends the list of messages to `out`: content becomes one string and the arguments of tool calls
// become objects; all other fields are copied.
FieldError append_messages(Element value, const RequestLimits& limits, Conversation& conversation,
                           std::string& out);

}  // namespace quire::server
