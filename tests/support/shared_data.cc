#include "support/shared_data.h"

#include <cstdlib>

namespace quire::testing {

std::filesystem::path source_path(std::string_view relative) {
  const char* root = std::getenv("QUIRE_SOURCE_DIR");
  return std::filesystem::path(root != nullptr ? root : ".") / relative;
}

std::filesystem::path abacus_path() {
  return QUIRE_ABACUS_DIR;
}

std::filesystem::path shared_data_path(std::string_view relative) {
  if (const char* root = std::getenv("QUIRE_SHARED_DATA")) {
    return std::filesystem::path(root) / relative;
  }
  return source_path("..") / "shared" / "data" / relative;
}

}  // namespace quire::testing
