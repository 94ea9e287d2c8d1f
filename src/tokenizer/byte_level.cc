#include "tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace quire {
namespace {

constexpr char32_t kNumSpellings = 0x144;  // U+0000 to U+0143, the highest character in use

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Tables {
  std::array<char32_t, 256> spelling{};
  std::array<int16_t, kNumSpellings> byte{};

  constexpr Tables() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      spelling[b] = is_printable(b) ? b : next++;
      byte[spelling[b]] = static_cast<int16_t>(b);
    }
  }
};
constexpr Tables kTables;

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) append_utf8(kTables.spelling[static_cast<unsigned char>(c)], out);
  return out;
}

bool append_unspelled(std::string_view spelling, std::string& out) {
  const size_t start = out.size();
  for (size_t i = 0; i < spelling.size(); ++i) {
    // The UTF-8 of a spelling is one byte, or two bytes with a first byte of at most 0xC5.
    char32_t c = static_cast<unsigned char>(spelling[i]);
    if (c >= 0xC2 && c <= 0xC5 && i + 1 < spelling.size()) {
      c = ((c & 0x1F) << 6) | (static_cast<unsigned char>(spelling[++i]) & 0x3FU);
    } else if (c >= 0x80) {
      c = kNumSpellings;
    }
    if (c >= kNumSpellings || kTables.byte[c] < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(kTables.byte[c]);
  }
  return true;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string out;
  if (!append_unspelled(spelling, out)) return std::nullopt;
  return out;
}

}  // namespace quire
