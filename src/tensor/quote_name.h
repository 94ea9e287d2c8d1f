#pragma once

#include <string>
#include <string_view>

namespace quire {

// A name that a file gave us, fit for one line of an error: in quotes, escaped, and cut where it is
// long.
std::string quote_name(std::string_view name);

}  // namespace quire
