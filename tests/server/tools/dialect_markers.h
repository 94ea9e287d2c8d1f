// The markers of all dialects, as tokenizers have them.
#pragma once

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/tools/dialects.h"

namespace quire::server {

inline constexpr std::string_view kForeign = "<|foreign|>";  // a special token that is no marker

// The parts of a literal that tokenizers have as tokens: "<tool_call>" of "<tool_call>\n".
inline void add_markers(std::string_view literal, std::set<std::string>& out) {
  for (size_t begin = 0; begin < literal.size(); ++begin) {
    const char open = literal[begin];
    if (open != '<' && open != '[') continue;
    const size_t end = literal.find(open == '<' ? '>' : ']', begin);
    if (end == std::string_view::npos) return;
    const std::string_view marker = literal.substr(begin, end + 1 - begin);
    if (marker.find_first_of(" \n=") == std::string_view::npos && marker.size() > 2) {
      out.emplace(marker);
      begin = end;
    }
  }
}

// The markers of all dialects, and one special token more.
inline std::vector<std::string> dialect_markers() {
  ResponseTemplate::Literals literals;
  for (const ResponseTemplate& dialect : dialects()) dialect.add_literals(literals);
  std::set<std::string> markers = {"\uff5cDSML\uff5c", std::string(kForeign)};
  for (const std::string_view literal : literals.texts) add_markers(literal, markers);
  return {markers.begin(), markers.end()};
}

// Removes the texts of all markers, as a response does that leaves out special tokens.
inline std::string without_markers(std::vector<std::string> markers, std::string text) {
  std::ranges::sort(markers, std::ranges::greater(), &std::string::size);
  for (size_t at = 0; at < text.size();) {
    const auto found = std::ranges::find_if(markers, [&](const std::string& marker) {
      return std::string_view(text).substr(at).starts_with(marker);
    });
    if (found == markers.end()) {
      ++at;
    } else {
      text.erase(at, found->size());
    }
  }
  return text;
}

}  // namespace quire::server
