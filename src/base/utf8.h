// UTF-8 decoding as in Unicode's table 3-7: no overlong forms, no surrogates.
#pragma once

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
// The length of the longest prefix that does not end inside a character which later bytes could
// complete.
size_t complete_utf8_prefix(std::string_view text);

}  // namespace quire
