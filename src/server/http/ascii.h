// Character functions for HTTP: ASCII only, independent of the locale.
#pragma once

#include <algorithm>
#include <string_view>

namespace quire::http {

inline char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

inline bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

// Returns whether `c` is a control character that HTTP lines must not contain: all controls except
// the tab.
inline bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t') || byte == 0x7f;
}

}  // namespace quire::http
