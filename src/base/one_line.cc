#include "base/one_line.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace quire {
namespace {

bool is_control(char32_t c) {
  constexpr char32_t kLineSeparator = 0x2028;
  constexpr char32_t kParagraphSeparator = 0x2029;
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == kLineSeparator || c == kParagraphSeparator;
}

void append_escaped(char32_t c, std::string& out) {
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\r') {
    out += "\\r";
  } else if (c == '\t') {
    out += "\\t";
  } else {
    const auto code = static_cast<uint32_t>(c);
    out += c < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

}  // namespace

std::string one_line(std::string_view text) {
  constexpr size_t kMaxBytes = 2048;
  std::string line;
  while (!text.empty()) {
    if (line.size() >= kMaxBytes) return line + "…";
    const Utf8Char c = decode_utf8(text);
    if (is_control(c.code_point)) {
      append_escaped(c.code_point, line);
    } else {
      append_utf8(c.code_point, line);
    }
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  return line;
}

std::string clipped(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  if (text.size() <= kMaxShown) return one_line(text);
  return one_line(text.substr(0, complete_utf8_prefix(text.substr(0, kMaxShown)))) + "…";
}

}  // namespace quire
