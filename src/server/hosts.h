// Checks the Host header. Without API keys this prevents DNS rebinding: a name of another site that
// resolves to this machine would make a browser treat this server as that site.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// Returns whether a request with this Host field ("name:8000") is allowed. Accepts IP addresses,
// "localhost" and the names in `allowed` ("*": all), each with any port. Also accepts an empty
// field, which no browser sends.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& allowed);

// Returns whether a name of --allowed-hosts can be the name in a Host field, which has no scheme,
// port or path. Also accepts "*".
bool can_be_host(std::string_view name);

}  // namespace quire::server
