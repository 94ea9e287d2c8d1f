#include "base/build_info.h"

namespace quire {

// CMake defines these macros for this file only, so that a new version recompiles nothing else.
std::string_view version() {
  return QUIRE_VERSION;
}
std::string_view compiler() {
  return QUIRE_COMPILER;
}
std::string_view build_type() {
  return QUIRE_BUILD_TYPE;
}

}  // namespace quire
