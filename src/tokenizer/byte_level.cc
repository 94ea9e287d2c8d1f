#include "tokenizer/byte_level.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace quire {
namespace {

constexpr char32_t kNumSpellings = 0x144;  // U+0000 up to the last character in use, U+0143

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
  while (!spelling.empty()) {
    const Utf8Char c = decode_utf8(spelling);
    if (!c.valid || c.code_point >= kNumSpellings || kTables.byte[c.code_point] < 0) {
      out.resize(start);
      return false;
    }
    out += static_cast<char>(kTables.byte[c.code_point]);
    spelling.remove_prefix(static_cast<size_t>(c.num_bytes));
  }
  return true;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string out;
  if (!append_unspelled(spelling, out)) return std::nullopt;
  return out;
}

}  // namespace quire
