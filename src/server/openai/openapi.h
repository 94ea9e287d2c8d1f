#pragma once

#include <string_view>

namespace quire::server {

// The OpenAPI description of the server's routes (openapi.json of this folder).
std::string_view openapi_json();

}  // namespace quire::server
