// The directory of files that Quire can create again: measured choices and packed weights.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace quire {

// $XDG_CACHE_HOME/quire, else $HOME/.cache/quire; empty if neither is an absolute path.
std::filesystem::path own_cache_directory();

// The text with '-' in place of every byte that is not an ASCII letter, a digit or '.'.
std::string file_name_part(std::string_view text);

}  // namespace quire
