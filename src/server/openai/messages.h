// The messages of a conversation, as chat templates expect them.
#pragma once

#include <string>

#include "server/openai/conversation.h"

namespace quire::server {

// Appends the list to `out`: content as one string, the arguments of tool calls as objects, all
// other fields as they came.
Fault append_messages(Element value, const CallLimits& limits, Conversation& conversation,
                      std::string& out);

}  // namespace quire::server
