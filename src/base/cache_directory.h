// The directory in which Quire keeps what it can make anew: measured choices and packed weights.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace quire {

// $XDG_CACHE_HOME/quire, else $HOME/.cache/quire; empty if neither variable is set.
std::filesystem::path cache_directory();

// The text as a part of a file's name: letters, digits and points, and '-' for everything else.
std::string file_name_part(std::string_view text);

}  // namespace quire
