// The checks of a request that need neither its body nor a model, and the transport's hooks that
// apply them before a body is read.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "server/request_context.h"

namespace quire::server {

// Fails for a Host that ServiceConfig::allowed_hosts excludes; see is_allowed_host().
std::optional<ApiError> check_host(const ServiceConfig& config, RequestContext& context);
// Finds the caller's key, and sets key_idx. Fails without a right key.
std::optional<ApiError> authorize(const ServiceConfig& config, RequestContext& context);
// Fails for a POST whose body has another type than JSON, and for an encoded body. This also
// prevents cross-site form posts: a page of another site cannot send JSON's type without a CORS
// preflight. A request that no page sent may state no type, and any type in Ollama's API.
std::optional<ApiError> check_body_type(const RequestContext& context);

// Answers 405; `allowed` lists the methods of the path.
ApiError wrong_method(RequestContext& context, const std::string& allowed);

// Answers a CORS preflight request.
void respond_to_preflight(const ServiceConfig& config, RequestContext& context);

struct PageFile;
// Sends a file of the chat page with its security policy.
void serve_page(const PageFile& file, RequestContext&& context);

// The hooks of a transport: `check` is called with the head of each request but a preflight, and
// refusals are written as errors of the request's API. All arguments must outlive the transport.
using HeadCheck = std::function<std::optional<ApiError>(RequestContext& context)>;
http::Hooks make_hooks(const ServiceConfig& config, ServerMetrics& metrics, LogThrottle& throttle,
                       HeadCheck check);

}  // namespace quire::server
