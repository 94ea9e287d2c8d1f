// The version of Quire, and how it was built.
#pragma once

#include <string_view>

namespace quire {

std::string_view version();     // "0.1.0"
std::string_view compiler();    // "GNU 12.2.0"
std::string_view build_type();  // "Release"

}  // namespace quire
