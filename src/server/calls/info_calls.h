// Routes that report on the server and its model.
#pragma once

#include "server/calls/call_context.h"

namespace quire::server {

void get_health(CallContext& context, Call&& call);
void get_ready(CallContext& context, Call&& call);
void get_version(CallContext& context, Call&& call);
void get_metrics(CallContext& context, Call&& call);
void get_openapi(CallContext& context, Call&& call);
void get_models(CallContext& context, Call&& call);
inline constexpr std::string_view kModelPrefix = "/v1/models/";  // followed by a model's name
void get_model(CallContext& context, Call&& call);
void get_tokenizer_info(CallContext& context, Call&& call);

}  // namespace quire::server
