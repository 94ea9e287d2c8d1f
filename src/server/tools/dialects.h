// The built-in dialects: the response templates in src/server/dialects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/tools/response_template.h"

namespace quire::server {

const std::vector<ResponseTemplate>& dialects();
// Return the dialect of a name of --tool-call-parser or --reasoning-parser; null if there is none.
const ResponseTemplate* find_dialect(std::string_view name);
const ResponseTemplate* find_reasoning_dialect(std::string_view name);

}  // namespace quire::server
