#include "tokenizer/pattern.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizer/char_set.h"
#include "tokenizer/regex.h"
#include "tokenizer/scanners.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

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

// `\s?CLASS+` and simpler forms: an optional character, then a run of at most max_count.
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
