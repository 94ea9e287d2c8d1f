#pragma once

#include <filesystem>
#include <string_view>

namespace quire::testing {

// The root of the source tree, from QUIRE_SOURCE_DIR, which CTest sets.
std::filesystem::path source_path(std::string_view relative);

// A file of the data that the project did not make and does not ship. It lies beside the checkout
// (`../shared/data`) or where QUIRE_SHARED_DATA points.
std::filesystem::path shared_data_path(std::string_view relative);

}  // namespace quire::testing

// Skips the test, and says why, where a file of the shared data is absent.
#define QUIRE_REQUIRE_SHARED(path)                                                             \
  do {                                                                                         \
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << (path) << " on this machine"; \
  } while (false)
