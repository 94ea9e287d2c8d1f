#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace quire::unicode {
namespace {

uint16_t category_flags(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kLetter | kWord | kUpper;
    case UTF8PROC_CATEGORY_LL:
      return kLetter | kWord | kLower;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kLetter | kWord | kCaseless;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kMark | kWord | kCaseless;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kNumber | kWord;
    case UTF8PROC_CATEGORY_NO:
      return kNumber;
    case UTF8PROC_CATEGORY_PC:
      return kPunct | kWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kPunct;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kSymbol;
    default:
      return 0;
  }
}

bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// The members of \w that no general category covers: Other_Alphabetic symbols and Join_Control.
bool is_extra_word(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) || c == 0x200C ||
         c == 0x200D;
}

// The characters of the script Han (Unicode 16). utf8proc has no data about scripts.
bool is_han(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
      {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
      {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
      {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
      {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
      {0x30000, 0x3134A}, {0x31350, 0x323AF}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [c](const auto& range) { return c >= range.first && c <= range.second; });
}

bool is_hangul_syllable(char32_t c) {
  return c >= 0xAC00 && c <= 0xD7A3;
}
// Conjoining vowels and final consonants, which compose with the preceding character.
bool is_trailing_jamo(char32_t c) {
  return (c >= 0x1161 && c <= 0x1175) || (c >= 0x11A8 && c <= 0x11C2);
}

}  // namespace

CharTable::CharTable() {
  std::vector<Block> full(0x1100, Block{});
  const auto entry = [&full](char32_t c) -> uint16_t& { return full[c >> 8][c & 0xFF]; };
  std::vector<char32_t> composes_backward;
  for (char32_t c = 0; c < 0x110000; ++c) {
    // Planes 4 to 13 have no characters; planes 15 and 16 are private use without properties.
    if (c == 0x40000) c = 0xE0000;
    if (c == 0xF0000) break;
    const auto code = static_cast<utf8proc_int32_t>(c);
    const utf8proc_property_t* property = utf8proc_get_property(code);
    uint16_t flags = category_flags(static_cast<utf8proc_category_t>(property->category));
    if (is_white_space(c)) flags |= kSpace;
    if (c == '\r' || c == '\n') flags |= kNewline;
    if (is_extra_word(c)) flags |= kWord;
    if (is_han(c)) flags |= kHan;
    bool inert = property->combining_class == 0 && !is_trailing_jamo(c);
    const bool decomposes = property->decomp_seqindex != UINT16_MAX && property->decomp_type == 0;
    if (decomposes && !is_hangul_syllable(c)) {
      utf8proc_int32_t parts[16];
      const utf8proc_ssize_t count =
          utf8proc_decompose_char(code, parts, 16, UTF8PROC_DECOMPOSE, nullptr);
      for (utf8proc_ssize_t i = 1; i < count && i < 16; ++i) {
        composes_backward.push_back(static_cast<char32_t>(parts[i]));
      }
      const utf8proc_ssize_t composed = utf8proc_normalize_utf32(
          parts, count, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
      inert = inert && composed == 1 && parts[0] == code;
    }
    if (inert) flags |= kNfcInert;
    entry(c) = flags;
  }
  for (const char32_t c : composes_backward) entry(c) &= static_cast<uint16_t>(~kNfcInert);

  std::map<Block, uint16_t> seen;
  for (size_t i = 0; i < full.size(); ++i) {
    const auto [it, is_new] = seen.try_emplace(full[i], static_cast<uint16_t>(blocks_.size()));
    if (is_new) blocks_.push_back(full[i]);
    index_[i] = it->second;
  }
}

const CharTable& CharTable::get() {
  static const CharTable kTable;
  return kTable;
}

size_t last_char_start(std::string_view text) {
  size_t i = text.size() - 1;
  while (i > 0 && is_continuation(text[i])) --i;
  return i;
}

}  // namespace quire::unicode

namespace quire {
namespace {

constexpr int kMaxDecomposed = 32;  // U+FDFA has the longest decomposition: 18 characters

int combining_class(utf8proc_int32_t c) {
  return utf8proc_get_property(c)->combining_class;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text, bool compatible) {
  const int options = compatible ? UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT : UTF8PROC_DECOMPOSE;
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    text.remove_prefix(static_cast<size_t>(c.num_bytes));
    utf8proc_int32_t parts[kMaxDecomposed];
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), parts, kMaxDecomposed,
                                static_cast<utf8proc_option_t>(options), nullptr);
    out.insert(out.end(), parts, parts + std::clamp<utf8proc_ssize_t>(count, 0, kMaxDecomposed));
  }
  return out;
}

// Replaces utf8proc's reordering, a bubble sort that takes quadratic time on a long run of marks.
void order_marks(std::vector<utf8proc_int32_t>& chars) {
  for (auto it = chars.begin(); it != chars.end();) {
    if (combining_class(*it) == 0) {
      ++it;
      continue;
    }
    const auto end =
        std::find_if(it, chars.end(), [](utf8proc_int32_t c) { return combining_class(c) == 0; });
    std::stable_sort(it, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    it = end;
  }
}

void append_normalized(std::string_view text, NormalForm form, std::string& out) {
  std::vector<utf8proc_int32_t> chars =
      decompose(text, form == NormalForm::kNfkc || form == NormalForm::kNfkd);
  order_marks(chars);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) {
    const utf8proc_ssize_t length = utf8proc_normalize_utf32(
        chars.data(), static_cast<utf8proc_ssize_t>(chars.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    chars.resize(static_cast<size_t>(std::max<utf8proc_ssize_t>(length, 0)));
  }
  for (const utf8proc_int32_t c : chars) append_utf8(static_cast<char32_t>(c), out);
}

// Decomposes only the parts that NFC can change, each with the character before it.
std::string to_nfc(std::string_view text) {
  const unicode::CharTable& table = unicode::CharTable::get();
  std::string out;
  out.reserve(text.size());
  const char* p = text.data();
  const char* const end = p + text.size();
  const char* copied = p;    // everything before this is in `out`
  const char* previous = p;  // start of the last inert character
  while (p < end) {
    const unicode::Char c = table.at(p);
    if (c.flags & unicode::kNfcInert) {
      previous = p;
      p += c.num_bytes;
      continue;
    }
    out.append(copied, previous);
    const char* stop = p;
    while (stop < end && !(table.at(stop).flags & unicode::kNfcInert)) {
      stop += unicode::char_length(*stop);
    }
    append_normalized({previous, static_cast<size_t>(stop - previous)}, NormalForm::kNfc, out);
    copied = previous = p = stop;
  }
  out.append(copied, end);
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<signed char>(c) >= 0; });
}

}  // namespace

std::string to_normal_form(std::string_view text, NormalForm form) {
  if (form == NormalForm::kNfc) return to_nfc(text);
  if (is_ascii(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  append_normalized(text, form, out);
  return out;
}

}  // namespace quire
