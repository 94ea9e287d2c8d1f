// Cross-origin requests (CORS) from the origins that --allowed-origins names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace quire::server {

// Returns the CORS headers of the response to this request. Returns none if the request has no
// Origin or if its origin is not allowed.
http::Headers cors_headers(const std::vector<std::string>& allowed_origins,
                           const http::Request& request);

// Returns whether a browser can send this text as an Origin: "https://example.com:8000", in lower
// case and without a path, or "null". Also accepts "*", which stands for every origin.
bool can_be_origin(std::string_view text);

// Returns whether this is a CORS preflight request (OPTIONS).
bool is_preflight(const http::Request& request);
// Returns the response to a preflight request: 204, or 403 if the origin is not allowed.
http::Response preflight_response(const std::vector<std::string>& allowed_origins,
                                  const http::Request& request);

}  // namespace quire::server
