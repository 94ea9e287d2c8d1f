#pragma once

#include <string>
#include <string_view>

namespace quire {

// A text of unknown origin (a file's name, a template's refusal) as at most 2 KiB on one line that
// does nothing to a terminal: control characters become \n, \t, \x1b, broken UTF-8 U+FFFD.
std::string one_line(std::string_view text);
// The same of at most 60 bytes of the text, for the middle of a message; "…" marks a cut.
std::string clipped(std::string_view text);

}  // namespace quire
