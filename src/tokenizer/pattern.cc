#include "tokenizer/pattern.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tokenizer/scanners.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

// A class such as `\p{L}`, `\s`, `[a-z\p{M}]`, `[^\r\n]` or `x`, without case folding.
class CharSet {
 public:
  // Parses one class at the front of `regex` and removes it; nullopt if there is no such class.
  static std::optional<CharSet> parse(std::string_view& regex);

  bool contains(const unicode::Char& c) const {
    if (c.code_point < 128) return ascii_[c.code_point];
    return contains_slow(c.code_point, c.flags);
  }

 private:
  struct Item {
    char32_t code_point = 0;
    uint16_t flags = 0;  // not 0: a class such as \p{L}; code_point is unused
  };
  static std::optional<Item> parse_item(std::string_view& regex, bool in_brackets);
  bool contains_slow(char32_t code_point, uint16_t flags) const;
  void finish();

  uint16_t flags_ = 0;
  bool negated_ = false;
  std::vector<std::pair<char32_t, char32_t>> ranges_;  // inclusive, sorted
  std::array<bool, 128> ascii_{};
};

bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

uint16_t property_flags(std::string_view& regex) {
  using namespace unicode;
  constexpr std::pair<std::string_view, uint16_t> kProperties[] = {
      {"{L}", kLetter}, {"{M}", kMark}, {"{N}", kNumber}, {"{P}", kPunct}, {"{S}", kSymbol}};
  for (const auto& [name, flags] : kProperties) {
    if (consume(regex, name)) return flags;
  }
  return 0;
}

std::optional<CharSet::Item> CharSet::parse_item(std::string_view& regex, bool in_brackets) {
  if (regex.empty()) return std::nullopt;
  if (regex[0] == '\\') {
    if (regex.size() < 2) return std::nullopt;
    const char escape = regex[1];
    regex.remove_prefix(2);
    if (escape == 'n') return Item{.code_point = '\n'};
    if (escape == 'r') return Item{.code_point = '\r'};
    if (escape == 't') return Item{.code_point = '\t'};
    if (escape == 's') return Item{.flags = unicode::kSpace};
    if (escape == 'p') {
      const uint16_t flags = property_flags(regex);
      if (flags == 0) return std::nullopt;
      return Item{.flags = flags};
    }
    const bool is_symbol = unicode::CharTable::get().flags(static_cast<unsigned char>(escape)) &
                           (unicode::kPunct | unicode::kSymbol);
    if (static_cast<unsigned char>(escape) >= 0x80 || !is_symbol) return std::nullopt;
    return Item{.code_point = static_cast<char32_t>(escape)};
  }
  constexpr std::string_view kMeta = ".^$*+?()[]{}|";
  constexpr std::string_view kMetaInBrackets = "[]&^";
  if ((in_brackets ? kMetaInBrackets : kMeta).find(regex[0]) != std::string_view::npos) {
    return std::nullopt;
  }
  const Utf8Char c = decode_utf8(regex);
  if (!c.valid) return std::nullopt;
  regex.remove_prefix(static_cast<size_t>(c.num_bytes));
  return Item{.code_point = c.code_point};
}

std::optional<CharSet> CharSet::parse(std::string_view& regex) {
  CharSet set;
  const bool in_brackets = consume(regex, "[");
  if (in_brackets) set.negated_ = consume(regex, "^");
  do {
    const std::optional<Item> item = parse_item(regex, in_brackets);
    if (!item) return std::nullopt;
    set.flags_ |= item->flags;
    if (item->flags != 0) continue;
    char32_t last = item->code_point;
    if (in_brackets && regex.size() > 1 && regex[0] == '-' && regex[1] != ']') {
      regex.remove_prefix(1);
      const std::optional<Item> end = parse_item(regex, true);
      if (!end || end->flags != 0 || end->code_point < last) return std::nullopt;
      last = end->code_point;
    }
    set.ranges_.emplace_back(item->code_point, last);
  } while (in_brackets && !consume(regex, "]"));
  set.finish();
  return set;
}

void CharSet::finish() {
  std::sort(ranges_.begin(), ranges_.end());
  // Merges overlapping ranges, so that a search needs to check only one range.
  std::vector<std::pair<char32_t, char32_t>> merged;
  for (const auto& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
  for (char32_t c = 0; c < 128; ++c) {
    ascii_[c] = contains_slow(c, unicode::CharTable::get().flags(c));
  }
}

bool CharSet::contains_slow(char32_t code_point, uint16_t flags) const {
  bool inside = (flags & flags_) != 0;
  if (!inside) {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), std::pair(code_point, char32_t{0x110000}));
    inside = after != ranges_.begin() && code_point <= std::prev(after)->second;
  }
  return inside != negated_;
}

using unicode::CharTable;

// A scanner returns the end of the match that begins at `p`, or nullptr.
template <typename Scanner>
class ScannerPattern final : public Pattern {
 public:
  explicit ScannerPattern(Scanner scanner) : scanner_(std::move(scanner)) {}

  std::optional<Match> find(std::string_view text, size_t from, SearchBudget&) const override {
    const char* const end = text.data() + text.size();
    for (const char* p = text.data() + from; p < end; p += unicode::char_length(*p)) {
      if (const char* stop = scanner_(p, end)) {
        return Match{static_cast<size_t>(p - text.data()), static_cast<size_t>(stop - text.data())};
      }
    }
    return std::nullopt;
  }

 private:
  Scanner scanner_;
};

template <typename Scanner>
std::unique_ptr<Pattern> make_scanner_pattern(Scanner scanner) {
  return std::make_unique<ScannerPattern<Scanner>>(std::move(scanner));
}

class TrailingSpacePattern final : public Pattern {
 public:
  std::optional<Match> find(std::string_view text, size_t from, SearchBudget&) const override {
    return scan::find_trailing_space(text, from);
  }
};

class LiteralPattern final : public Pattern {
 public:
  explicit LiteralPattern(std::string literal) : literal_(std::move(literal)) {}

  std::optional<Match> find(std::string_view text, size_t from, SearchBudget&) const override {
    const size_t at = literal_.empty() ? std::string_view::npos : find_text(text, literal_, from);
    if (at == std::string_view::npos) return std::nullopt;
    return Match{at, at + literal_.size()};
  }

 private:
  std::string literal_;
};

// `\s?CLASS+` and simpler forms: an optional character, then a run of at most max_count characters.
struct RunScanner {
  std::optional<CharSet> before;
  CharSet set;
  size_t max_count;

  const char* operator()(const char* p, const char* end) const {
    const CharTable& table = CharTable::get();
    const unicode::Char first = table.at(p);
    if (before && before->contains(first)) {
      if (const char* stop = run(table, p + first.num_bytes, end)) return stop;
    }
    return run(table, p, end);
  }
  const char* run(const CharTable& table, const char* p, const char* end) const {
    const char* const start = p;
    for (size_t count = 0; p < end && count < max_count; ++count) {
      const unicode::Char c = table.at(p);
      if (!set.contains(c)) break;
      p += c.num_bytes;
    }
    return p == start ? nullptr : p;
  }
};

std::optional<RunScanner> parse_run(std::string_view regex) {
  std::optional<CharSet> first = CharSet::parse(regex);
  if (!first) return std::nullopt;
  RunScanner scanner{std::nullopt, *first, 1};
  if (regex.starts_with('?')) {
    regex.remove_prefix(1);
    const std::optional<CharSet> second = CharSet::parse(regex);
    if (!second) return std::nullopt;
    scanner.before = std::move(first);
    scanner.set = *second;
  }
  if (regex == "+") {
    scanner.max_count = SIZE_MAX;
  } else if (regex.size() == 5 && regex.starts_with("{1,") && regex[3] >= '1' && regex[3] <= '9' &&
             regex[4] == '}') {
    scanner.max_count = static_cast<size_t>(regex[3] - '0');
  } else if (!regex.empty()) {
    return std::nullopt;
  }
  return scanner;
}

// Spells control characters as escapes, so that both spellings of a regex compare equal.
std::string canonical(std::string_view regex) {
  std::string out;
  for (const char c : regex) {
    if (c == '\r') {
      out += "\\r";
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out;
}

struct FlagScanner {
  unsigned flags;
  bool ascii_symbols;

  const char* operator()(const char* p, const char*) const {
    const unicode::Char c = CharTable::get().at(p);
    const unsigned wanted =
        ascii_symbols && c.code_point < 128 ? flags | unicode::kPunct | unicode::kSymbol : flags;
    return (c.flags & wanted) != 0 ? p + c.num_bytes : nullptr;
  }
};

}  // namespace

Result<std::unique_ptr<Pattern>> make_regex_pattern(std::string_view regex) {
  const std::string known = canonical(regex);
  if (known == scan::kGpt2Regex) return make_scanner_pattern(scan::gpt2);
  if (known == scan::kLlama3Regex) return make_scanner_pattern(scan::llama3<3>);
  if (known == scan::kQwen2Regex) return make_scanner_pattern(scan::llama3<1>);
  if (known == scan::kTekkenRegex) return make_scanner_pattern(scan::tekken);
  if (known == scan::kO200kRegex) return make_scanner_pattern(scan::o200k);
  if (known == scan::kKimiRegex) return make_scanner_pattern(scan::kimi);
  if (known == scan::kDeepSeekV3Regex) return make_scanner_pattern(scan::deepseek_v3);
  if (known == scan::kWordsRegex) return make_scanner_pattern(scan::words);
  if (known == scan::kTrailingSpaceRegex) {
    return std::unique_ptr<Pattern>(std::make_unique<TrailingSpacePattern>());
  }
  if (std::optional<RunScanner> run = parse_run(known)) {
    return make_scanner_pattern(std::move(*run));
  }
  return compile_regex(regex);
}

std::unique_ptr<Pattern> make_literal_pattern(std::string literal) {
  return std::make_unique<LiteralPattern>(std::move(literal));
}

std::unique_ptr<Pattern> make_flag_pattern(unsigned flags, bool ascii_symbols) {
  return make_scanner_pattern(FlagScanner{flags, ascii_symbols});
}

}  // namespace quire
