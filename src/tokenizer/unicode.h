// Character properties from one table, and Unicode's normal forms.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace quire::unicode {

enum CharFlag : uint16_t {
  kLetter = 1 << 0,   // general category L
  kMark = 1 << 1,     // M
  kNumber = 1 << 2,   // N
  kPunct = 1 << 3,    // P
  kSymbol = 1 << 4,   // S
  kSpace = 1 << 5,    // White_Space, which \s matches
  kNewline = 1 << 6,  // \r or \n
  kWord = 1 << 7,     // \w
  // NFC never changes the character, regardless of its neighbours; true for all of ASCII.
  kNfcInert = 1 << 8,
  kUpper = 1 << 9,      // Lu or Lt
  kLower = 1 << 10,     // Ll
  kCaseless = 1 << 11,  // Lm, Lo or M
  kHan = 1 << 12,       // the script Han: letters, numbers, marks and symbols
};

struct Char {
  char32_t code_point;
  uint16_t flags;
  uint16_t num_bytes;
};

class CharTable {
 public:
  static const CharTable& get();

  uint16_t flags(char32_t code_point) const {
    return blocks_[index_[code_point >> 8]][code_point & 0xFF];
  }

  // Decodes the character at `p`, which must be the start of a valid UTF-8 sequence.
  Char at(const char* p) const {
    const auto byte = [p](int i) {
      return static_cast<char32_t>(static_cast<unsigned char>(p[i]));
    };
    const char32_t lead = byte(0);
    if (lead < 0x80) return {lead, blocks_[0][lead], 1};
    char32_t code_point = 0;
    uint16_t num_bytes = 0;
    if (lead < 0xE0) {
      code_point = ((lead & 0x1F) << 6) | (byte(1) & 0x3F);
      num_bytes = 2;
    } else if (lead < 0xF0) {
      code_point = ((lead & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
      num_bytes = 3;
    } else {
      code_point = ((lead & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) |
                   (byte(3) & 0x3F);
      num_bytes = 4;
    }
    return {code_point, flags(code_point), num_bytes};
  }

 private:
  CharTable();

  using Block = std::array<uint16_t, 256>;
  std::array<uint16_t, 0x1100> index_{};
  std::vector<Block> blocks_;
};

// The length in bytes of the character that starts with this byte of valid UTF-8.
inline size_t char_length(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}
// Whether the byte continues a character of valid UTF-8, so that no character starts with it.
inline bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}
// The offset of the last character of a non-empty valid text.
size_t last_char_start(std::string_view text);

}  // namespace quire::unicode

namespace quire {

// The four normal forms (UAX #15). The time is linear in the size of the text.
enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// `text` must be valid UTF-8.
std::string to_normal_form(std::string_view text, NormalForm form);

}  // namespace quire
