// What a request may call this server: without keys, a page of another site whose name has come to
// mean this machine (DNS rebinding) would else be taken for the server's own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::server {

// `host`: the field, "name:8000". Addresses, "localhost" and what is in `allowed` ("*": all),
// whatever the port; and none at all, which no browser sends.
bool is_allowed_host(std::string_view host, const std::vector<std::string>& allowed);

// Whether a name of --allowed-hosts can be the name of a Host at all, which has no scheme, no port
// and no path.
bool can_be_host(std::string_view name);

}  // namespace quire::server
