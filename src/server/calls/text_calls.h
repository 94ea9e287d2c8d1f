// Routes between text and tokens.
#pragma once

#include "server/calls/call_context.h"

namespace quire::server {

void post_tokenize(CallContext& context, Call&& call);
void post_detokenize(CallContext& context, Call&& call);

}  // namespace quire::server
