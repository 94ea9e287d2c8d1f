#include "server/openai/json_text.h"

#include "base/text.h"

namespace quire::server {
namespace {

bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x80 && c != '"' && c != '\\';
}

void append_control(char c, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 0xF];
  }
}

}  // namespace

void append_escaped(std::string_view text, std::string& out) {
  while (!text.empty()) {
    size_t num_plain = 0;
    while (num_plain < text.size() && is_plain(text[num_plain])) ++num_plain;
    out.append(text.substr(0, num_plain));
    text.remove_prefix(num_plain);
    if (text.empty()) return;
    if (static_cast<unsigned char>(text[0]) < 0x80) {
      append_control(text[0], out);
      text.remove_prefix(1);
      continue;
    }
    const Utf8Char c = decode_utf8(text);
    const auto num_bytes = static_cast<size_t>(c.num_bytes);
    if (c.valid) {
      out.append(text.substr(0, num_bytes));
    } else {
      append_utf8(c.code_point, out);
    }
    text.remove_prefix(num_bytes);
  }
}

}  // namespace quire::server
