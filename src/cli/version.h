#pragma once

#include <string_view>

namespace quire::cli {

std::string_view version();     // "0.1.0"
std::string_view compiler();    // "GCC 12.2.0"
std::string_view build_type();  // "Release"

}  // namespace quire::cli
