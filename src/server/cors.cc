#include "server/cors.h"

#include <algorithm>

namespace quire::server {

http::Headers cors_headers(const std::vector<std::string>& allowed_origins,
                           const http::Request& request) {
  const std::string origin(request.header("origin"));
  const auto allows = [&](std::string_view name) {
    return std::ranges::find(allowed_origins, name) != allowed_origins.end();
  };
  if (origin.empty() || !(allows(origin) || allows("*"))) return {};
  return {{"access-control-allow-origin", origin},
          {"access-control-expose-headers", "x-request-id, retry-after"},
          {"vary", "Origin"}};
}

bool can_be_origin(std::string_view text) {
  if (text == "*" || text == "null") return true;
  const size_t scheme_end = text.find("://");
  if (scheme_end == 0 || scheme_end == std::string_view::npos) return false;
  const std::string_view authority = text.substr(scheme_end + 3);
  return !authority.empty() && authority.find_first_of("/?#@*") == std::string_view::npos &&
         std::ranges::none_of(
             text, [](char c) { return c <= ' ' || c == '\x7f' || (c >= 'A' && c <= 'Z'); });
}

bool is_preflight(const http::Request& request) {
  return request.method == "OPTIONS" && !request.header("origin").empty() &&
         !request.header("access-control-request-method").empty();
}

http::Response preflight_response(const std::vector<std::string>& allowed_origins,
                                  const http::Request& request) {
  http::Response response = {
      .status = 204, .headers = cors_headers(allowed_origins, request), .body = {}};
  if (response.headers.empty()) {
    response.status = 403;
    return response;
  }
  response.headers.emplace_back("access-control-allow-methods", "GET, POST");
  response.headers.emplace_back("access-control-allow-headers",
                                "authorization, content-type, x-request-id");
  response.headers.emplace_back("access-control-max-age", "600");
  return response;
}

}  // namespace quire::server
