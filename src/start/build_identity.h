// Names the build: its sources, compiler and build type.
#pragma once

#include <string_view>

namespace quire {

// "3f2a9c1d4b5e6f70 (GNU 13.3.0, Release, no CUDA)": a digest of the sources, and how they are
// compiled. cmake/build_identity.cmake writes the function.
std::string_view build_identity();

}  // namespace quire
