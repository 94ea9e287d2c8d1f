#pragma once

#include <string>
#include <string_view>

namespace quire {

// Makes a name from a file safe for one line of an error: quoted, escaped, and shortened if it is
// long.
std::string quote_name(std::string_view name);

}  // namespace quire
