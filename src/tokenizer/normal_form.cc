#include "tokenizer/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

constexpr int kMaxDecomposed = 32;  // the longest decomposition, U+FDFA's, has 18 characters

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
  const char* copied = p;    // everything before it is in `out`
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
