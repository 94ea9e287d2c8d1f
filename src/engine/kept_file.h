// The files in which Quire keeps measured times between its runs.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace quire {

// A CSV file in the user's cache directory, below $XDG_CACHE_HOME or $HOME/.cache; empty if neither
// is set. Its name consists of `kind`, the parts, and the version of Quire: a new version may have
// faster kernels, so it does not read the times of another one.
std::filesystem::path kept_file(std::string_view kind,
                                std::initializer_list<std::string_view> parts);

}  // namespace quire
