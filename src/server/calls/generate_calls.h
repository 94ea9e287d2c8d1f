// The routes that generate text.
#pragma once

#include "server/calls/call_context.h"

namespace quire::server {

void post_completions(CallContext& context, Call&& call);
void post_chat_completions(CallContext& context, Call&& call);

}  // namespace quire::server
