#include "base/text.h"

#include <fmt/format.h>
#include <string.h>

namespace quire {
namespace {

// Returns 0 past the end. It is no continuation byte, so a cut character is invalid like any other.
unsigned byte_at(std::string_view text, size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
}

// The length in bytes of a character that starts with `lead`; 0 if `lead` cannot start one.
int expected_length(unsigned lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

// The range of the second byte excludes overlong forms, surrogates and values above U+10FFFF.
bool valid_second(unsigned lead, unsigned second) {
  const unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

// Whether the character is escaped, because a terminal may interpret it instead of printing it: a
// control character, a line separator, or a bidirectional control, which can make a line read as
// another one.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
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

Utf8Char decode_utf8(std::string_view text) {
  constexpr char32_t kReplacement = 0xFFFD;
  const unsigned lead = byte_at(text, 0);
  const int length = expected_length(lead);
  if (length == 0) return {kReplacement, 1, false};
  if (length == 1) return {static_cast<char32_t>(lead), 1, true};
  char32_t code_point = lead & (0xFFU >> (length + 1));
  for (int i = 1; i < length; ++i) {
    const unsigned next = byte_at(text, static_cast<size_t>(i));
    const bool good = i == 1 ? valid_second(lead, next) : (next & 0xC0U) == 0x80U;
    if (!good) return {kReplacement, i, false};
    code_point = (code_point << 6) | (next & 0x3FU);
  }
  return {code_point, length, true};
}

void append_utf8(char32_t code_point, std::string& out) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    if (!c.valid) return false;
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    const auto num_bytes = static_cast<size_t>(c.num_bytes);
    if (c.valid) {
      out.append(text.substr(0, num_bytes));
    } else {
      append_utf8(c.code_point, out);
    }
    text.remove_prefix(num_bytes);
  }
  return out;
}

size_t complete_utf8_prefix(std::string_view text) {
  // Only the last three bytes can start an unfinished character.
  const size_t first = text.size() > 3 ? text.size() - 3 : 0;
  for (size_t i = first; i < text.size(); ++i) {
    const int length = expected_length(byte_at(text, i));
    if (length <= 1 || i + static_cast<size_t>(length) <= text.size()) continue;
    const Utf8Char c = decode_utf8(text.substr(i));
    if (!c.valid && i + static_cast<size_t>(c.num_bytes) == text.size()) return i;
  }
  return text.size();
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  const void* at = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (at == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(at) - text.data());
}

size_t rfind_text(std::string_view text, std::string_view part) {
  if (part.size() > text.size()) return std::string_view::npos;
  // No function searches backwards in linear time, so both texts are reversed.
  const std::string backwards(text.rbegin(), text.rend());
  const std::string part_backwards(part.rbegin(), part.rend());
  const size_t at = find_text(backwards, part_backwards);
  return at == std::string_view::npos ? at : text.size() - at - part.size();
}

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
  constexpr size_t kMaxBytes = 60;
  if (text.size() <= kMaxBytes) return one_line(text);
  return one_line(text.substr(0, complete_utf8_prefix(text.substr(0, kMaxBytes)))) + "…";
}

}  // namespace quire
