// Text helpers: UTF-8 as in Unicode's table 3-7 (no overlong forms, no surrogates), substring
// search in linear time, and texts that are safe to print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace quire {

struct Utf8Char {
  char32_t code_point;  // U+FFFD for invalid bytes
  int num_bytes;        // consumed: for an invalid sequence, its maximal valid prefix (at least 1)
  bool valid;
};

// Decodes the first character of a non-empty text.
Utf8Char decode_utf8(std::string_view text);
void append_utf8(char32_t code_point, std::string& out);
bool is_valid_utf8(std::string_view text);
// Replaces each maximal invalid sequence by one U+FFFD, as Python's and WHATWG's decoders do.
std::string replace_invalid_utf8(std::string_view text);
// The length of the text without a last character that is incomplete, which later bytes could
// complete.
size_t complete_utf8_prefix(std::string_view text);

// Returns the position of the first occurrence of `part` at or after `from`, or npos.
// std::string_view::find is quadratic in the worst case, which a client that chooses both texts can
// trigger.
size_t find_text(std::string_view text, std::string_view part, size_t from = 0);
// Returns the position of the last occurrence, or npos. Copies both texts.
size_t rfind_text(std::string_view text, std::string_view part);

// Makes a text of unknown origin (a file name, a template's error) safe for a terminal: about 2 KiB
// at most, on one line, with control characters as \n, \t or \x1b and invalid UTF-8 as U+FFFD.
std::string one_line(std::string_view text);
// Does the same for at most 60 bytes of the text, for use inside a message; "…" marks a cut.
std::string clipped(std::string_view text);

}  // namespace quire
