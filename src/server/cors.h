// Which other sites' pages may call, where the operator says so: --allowed-origins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace quire::server {

// The headers of an answer to this request; none where it comes from no other site, or from one
// that is not allowed.
http::Headers cors_headers(const std::vector<std::string>& allowed_origins,
                           const http::Request& request);

// Whether a browser can send this as its Origin: "https://example.com:8000", all of it in lower
// case and no path; or "null". "*" stands for all.
bool can_be_origin(std::string_view text);

// A browser's question before the call itself.
bool is_preflight(const http::Request& request);
// Its answer; 403 where the origin is not allowed.
http::Response preflight_response(const std::vector<std::string>& allowed_origins,
                                  const http::Request& request);

}  // namespace quire::server
