#include "tokenizer/scanners.h"

#include <cstddef>

#include "tokenizer/unicode.h"

namespace quire::scan {
namespace {

using unicode::Char;
using unicode::CharTable;
using enum unicode::CharFlag;

const char* skip_any(const CharTable& table, const char* p, const char* end, unsigned flags) {
  while (p < end) {
    const Char c = table.at(p);
    if ((c.flags & flags) == 0) break;
    p += c.num_bytes;
  }
  return p;
}

const char* skip_none(const CharTable& table, const char* p, const char* end, unsigned flags) {
  while (p < end) {
    const Char c = table.at(p);
    if ((c.flags & flags) != 0) break;
    p += c.num_bytes;
  }
  return p;
}

bool has_flag(const CharTable& table, const char* p, const char* end, unsigned flags) {
  return p < end && (table.at(p).flags & flags) != 0;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Matches 's 't 're 've 'm 'll 'd, starting at the apostrophe. With case folding, U+017F (long s)
// also equals s.
const char* contraction(const char* p, const char* end, bool any_case) {
  const ptrdiff_t left = end - p;
  if (left < 2) return nullptr;
  const char a = any_case ? lower(p[1]) : p[1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return p + 2;
  if (left < 3) return nullptr;
  const char b = any_case ? lower(p[2]) : p[2];
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return p + 3;
  if (any_case && p[1] == '\xC5' && p[2] == '\xBF') return p + 3;
  return nullptr;
}

// Matches `\s+(?!\S)|\s+` at white space: the whole run if it ends the text; otherwise the run
// without its last character, or the only character of the run.
const char* spaces(const CharTable& table, const char* p, const char* end) {
  const char* const stop = skip_any(table, p, end, kSpace);
  if (stop == end) return stop;
  const char* const last = p + unicode::last_char_start({p, static_cast<size_t>(stop - p)});
  return last == p ? stop : last;
}

// Matches `\s*[\r\n]+|\s+(?!\S)|\s+` at white space: up to the run's last line end if it has one,
// otherwise like spaces().
const char* spaces_or_lines(const CharTable& table, const char* p, const char* end) {
  const char* const stop = skip_any(table, p, end, kSpace);
  for (const char* q = stop; q > p; --q) {
    if (q[-1] == '\r' || q[-1] == '\n') return q;
  }
  return spaces(table, p, end);
}

// Matches `\p{N}{1,max}` at a number.
const char* digits(const CharTable& table, const char* p, const char* end, int max) {
  const char* q = p + unicode::char_length(*p);
  for (int i = 1; i < max && has_flag(table, q, end, kNumber); ++i) q += unicode::char_length(*q);
  return q;
}

struct CasedRules {
  bool separates_han;
  bool has_contractions;
  int max_digits;
  bool has_slashes;  // symbols may be followed by slashes, as by line ends
};
constexpr CasedRules kTekken = {
    .separates_han = false, .has_contractions = false, .max_digits = 1, .has_slashes = true};
constexpr CasedRules kO200k = {
    .separates_han = false, .has_contractions = true, .max_digits = 3, .has_slashes = true};
constexpr CasedRules kKimi = {
    .separates_han = true, .has_contractions = true, .max_digits = 3, .has_slashes = false};

// Matches `A?U*L+|A?U+L*`. A: all characters except letters, numbers and line ends. U: upper-case
// letters. L: lower-case letters. Both U and L also have the caseless letters and marks.
template <CasedRules kRules>
const char* cased_word(const CharTable& table, const char* p, const char* end) {
  const auto is_in = [](const Char& c, unsigned flags) {
    return (c.flags & flags) != 0 && !(kRules.separates_han && (c.flags & kHan) != 0);
  };
  const Char first = table.at(p);
  const bool has_before = (first.flags & (kNewline | kLetter | kNumber)) == 0;
  const char* const start = has_before ? p + first.num_bytes : p;
  const char* q = start;
  const char* caseless_end = nullptr;  // end of the last caseless character of U*
  Char c = first;
  for (; q < end; q += c.num_bytes) {
    c = table.at(q);
    if (!is_in(c, kUpper | kCaseless)) break;
    if ((c.flags & kCaseless) != 0) caseless_end = q + c.num_bytes;
  }
  if (q < end && is_in(c, kLower)) {
    do {
      q += c.num_bytes;
      if (q == end) break;
      c = table.at(q);
    } while (is_in(c, kLower | kCaseless));
    return q;
  }
  // Without a lower-case letter, U* backtracks until L+ matches a caseless character. If U* has
  // none, L+ matches the optional character.
  if (caseless_end != nullptr) return caseless_end;
  if (has_before && is_in(first, kCaseless)) return start;
  return q == start ? nullptr : q;
}

template <CasedRules kRules>
const char* cased(const char* p, const char* end) {
  const CharTable& table = CharTable::get();
  const unsigned flags = table.at(p).flags;
  if (kRules.separates_han && (flags & kHan) != 0) return skip_any(table, p, end, kHan);
  if (const char* stop = cased_word<kRules>(table, p, end)) {
    if (!kRules.has_contractions || stop == end || *stop != '\'') return stop;
    const char* const longer = contraction(stop, end, true);
    return longer != nullptr ? longer : stop;
  }
  if (flags & kNumber) return digits(table, p, end, kRules.max_digits);
  const char* q = *p == ' ' ? p + 1 : p;
  if (q < end && !has_flag(table, q, end, kSpace | kLetter | kNumber)) {
    q = skip_none(table, q, end, kSpace | kLetter | kNumber);
    while (q < end && (*q == '\r' || *q == '\n' || (kRules.has_slashes && *q == '/'))) ++q;
    return q;
  }
  return spaces_or_lines(table, p, end);
}

bool is_ascii_letter(char c) {
  return lower(c) >= 'a' && lower(c) <= 'z';
}

}  // namespace

const char* gpt2(const char* p, const char* end) {
  const CharTable& table = CharTable::get();
  if (*p == '\'') {
    if (const char* stop = contraction(p, end, false)) return stop;
  }
  const char* q = *p == ' ' ? p + 1 : p;
  if (q < end) {
    const unsigned flags = table.at(q).flags;
    if (flags & kLetter) return skip_any(table, q, end, kLetter);
    if (flags & kNumber) return skip_any(table, q, end, kNumber);
    if (!(flags & kSpace)) return skip_none(table, q, end, kSpace | kLetter | kNumber);
  }
  return spaces(table, p, end);
}

template <int kMaxDigits>
const char* llama3(const char* p, const char* end) {
  const CharTable& table = CharTable::get();
  if (*p == '\'') {
    if (const char* stop = contraction(p, end, true)) return stop;
  }
  const Char c = table.at(p);
  if (c.flags & kLetter) return skip_any(table, p + c.num_bytes, end, kLetter);
  if (c.flags & kNumber) return digits(table, p, end, kMaxDigits);
  if (!(c.flags & kNewline) && has_flag(table, p + c.num_bytes, end, kLetter)) {
    return skip_any(table, p + c.num_bytes, end, kLetter);
  }
  const char* q = *p == ' ' ? p + 1 : p;
  if (q < end && !has_flag(table, q, end, kSpace | kLetter | kNumber)) {
    q = skip_none(table, q, end, kSpace | kLetter | kNumber);
    return skip_any(table, q, end, kNewline);
  }
  return spaces_or_lines(table, p, end);
}
template const char* llama3<1>(const char* p, const char* end);
template const char* llama3<3>(const char* p, const char* end);

const char* tekken(const char* p, const char* end) {
  return cased<kTekken>(p, end);
}
const char* o200k(const char* p, const char* end) {
  return cased<kO200k>(p, end);
}
const char* kimi(const char* p, const char* end) {
  return cased<kKimi>(p, end);
}

const char* deepseek_v3(const char* p, const char* end) {
  const CharTable& table = CharTable::get();
  const Char c = table.at(p);
  const bool is_ascii_symbol = c.code_point < 128 && (c.flags & (kPunct | kSymbol));
  if (is_ascii_symbol && p + 1 < end && is_ascii_letter(p[1])) {
    const char* q = p + 1;
    while (q < end && is_ascii_letter(*q)) ++q;
    return q;
  }
  if (!(c.flags & (kNewline | kLetter | kPunct | kSymbol)) &&
      has_flag(table, p + c.num_bytes, end, kLetter | kMark)) {
    return skip_any(table, p + c.num_bytes, end, kLetter | kMark);
  }
  if (c.flags & (kLetter | kMark)) return skip_any(table, p, end, kLetter | kMark);
  const char* q = *p == ' ' ? p + 1 : p;
  if (has_flag(table, q, end, kPunct | kSymbol)) {
    q = skip_any(table, q, end, kPunct | kSymbol);
    return skip_any(table, q, end, kNewline);
  }
  return c.flags & kSpace ? spaces_or_lines(table, p, end) : nullptr;
}

const char* words(const char* p, const char* end) {
  const CharTable& table = CharTable::get();
  const unsigned flags = table.at(p).flags;
  if (flags & kWord) return skip_any(table, p, end, kWord);
  return flags & kSpace ? nullptr : skip_none(table, p, end, kWord | kSpace);
}

std::optional<Match> find_trailing_space(std::string_view text, size_t from) {
  const CharTable& table = CharTable::get();
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  for (const char* p = begin + from; p < end;) {
    p = skip_none(table, p, end, kSpace);
    const char* const stop = skip_any(table, p, end, kSpace);
    const char* q = stop;
    if (stop != end) {
      do {
        --q;
      } while (q > p && *q != '\n');
    }
    if (q > p) return Match{static_cast<size_t>(p - begin), static_cast<size_t>(q - begin)};
    p = stop;
  }
  return std::nullopt;
}

}  // namespace quire::scan
