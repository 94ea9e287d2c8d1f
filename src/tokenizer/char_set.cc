#include "tokenizer/char_set.h"

#include <algorithm>

#include "base/text.h"

namespace quire {
namespace {

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

}  // namespace

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

}  // namespace quire
