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
// Finds the caller's key, and sets key_idx. Fails if the server has keys and the request has none
// of them.
std::optional<ApiError> authorize(const ServiceConfig& config, RequestContext& context);
// Fails for a POST whose body has another type than JSON, and for an encoded body. This also
// prevents cross-site form posts: a page of another site cannot send JSON's type without a CORS
// preflight. A request that does not come from a web page may state no type, and in Ollama's API
// any type.
std::optional<ApiError> check_body_type(const RequestContext& context);

// Returns the error 405, and adds the response header Allow. `allowed` lists the methods of the
// path.
ApiError wrong_method(RequestContext& context, const std::string& allowed);

// Responds to a CORS preflight request, and records the response.
void respond_to_preflight(const ServiceConfig& config, RequestContext& context);

struct PageFile;
// Sends a file of the chat page with its security policy.
void serve_page(const PageFile& file, RequestContext&& context);

// Makes the hooks of a transport. `check` is called with the head of each request except
// preflights. Refusals are written as errors of the request's API. The references must outlive the
// transport.
using HeadCheck = std::function<std::optional<ApiError>(RequestContext& context)>;
http::Hooks make_hooks(const ServiceConfig& config, ServerMetrics& metrics, LogThrottle& throttle,
                       HeadCheck check);

}  // namespace quire::server
