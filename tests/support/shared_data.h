#pragma once

#include <filesystem>
#include <string_view>

namespace quire::testing {

// The root of the source tree, from QUIRE_SOURCE_DIR, which CTest sets.
std::filesystem::path source_path(std::string_view relative);

// The embedded model as a directory of safetensors in BF16, with its tokenizer. The build writes it
// (the target abacus_checkpoint).
std::filesystem::path abacus_path();

// The path of a file that the project neither made nor ships. Such files are in `../shared/data`,
// beside the checkout, or in QUIRE_SHARED_DATA.
std::filesystem::path shared_data_path(std::string_view relative);

}  // namespace quire::testing

// Skips the test with a message if a file of the shared data is absent.
#define QUIRE_REQUIRE_SHARED(path)                                                             \
  do {                                                                                         \
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "no " << (path) << " on this machine"; \
  } while (false)
