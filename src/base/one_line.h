#pragma once

#include <string>
#include <string_view>

namespace quire {

// Makes a text of unknown origin (a file name, a template's error) safe for a terminal: at most 2
// KiB on one line, with control characters as \n, \t or \x1b and invalid UTF-8 as U+FFFD.
std::string one_line(std::string_view text);
// Does the same for at most 60 bytes of the text, for use inside a message; "…" marks a cut.
std::string clipped(std::string_view text);

}  // namespace quire
