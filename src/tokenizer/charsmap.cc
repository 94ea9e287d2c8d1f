#include "tokenizer/charsmap.h"

#include <fmt/format.h>

#include <cstring>

#include "base/text.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

constexpr size_t kMaxReplacementBytes = 128;  // known rules have fewer than 64

// The fields of a unit of a Darts-clone double array.
bool has_leaf(uint32_t unit) {
  return ((unit >> 8) & 1U) != 0;
}
uint32_t leaf_value(uint32_t unit) {
  return unit & 0x7FFFFFFFU;
}
uint32_t label(uint32_t unit) {
  return unit & 0x800000FFU;
}
uint32_t child_offset(uint32_t unit) {
  return (unit >> 10) << ((unit & 0x200U) >> 6);
}

}  // namespace

Result<Charsmap> Charsmap::parse(std::string_view blob) {
  uint32_t num_bytes = 0;
  if (blob.size() >= sizeof(num_bytes)) std::memcpy(&num_bytes, blob.data(), sizeof(num_bytes));
  if (blob.size() < sizeof(num_bytes) || num_bytes % sizeof(uint32_t) != 0 ||
      num_bytes > blob.size() - sizeof(num_bytes)) {
    return invalid_argument(fmt::format(
        "precompiled_charsmap is not valid; got {} bytes, which declare a trie of {} bytes",
        blob.size(), num_bytes));
  }
  Charsmap map;
  map.units_.resize(num_bytes / sizeof(uint32_t));
  // Skips an empty trie, because memcpy must not receive a null pointer.
  if (num_bytes > 0) std::memcpy(map.units_.data(), blob.data() + sizeof(num_bytes), num_bytes);
  map.replacements_ = blob.substr(sizeof(num_bytes) + num_bytes);
  if (!is_valid_utf8(map.replacements_)) {
    return invalid_argument("precompiled_charsmap's replacements are not valid UTF-8");
  }
  return map;
}

std::optional<Charsmap::Rule> Charsmap::find(std::string_view text, bool stop_at_first,
                                             SearchBudget& budget) const {
  std::optional<Rule> found;
  if (units_.empty()) return found;
  uint32_t node = child_offset(units_[0]);
  for (size_t i = 0; i < text.size() && !budget.is_spent(); ++i) {
    budget.spend(1);
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= child_offset(unit);
    if (!has_leaf(unit)) continue;
    if (node >= units_.size()) break;
    found = Rule{i + 1, replacement_at(leaf_value(units_[node]))};
    if (stop_at_first) break;
  }
  // A malformed trie may match half of a character.
  if (found && found->num_bytes < text.size() && unicode::is_continuation(text[found->num_bytes])) {
    return std::nullopt;
  }
  if (found) budget.spend_inserted(found->replacement.size());
  return found;
}

std::string_view Charsmap::replacement_at(uint32_t offset) const {
  if (offset >= replacements_.size()) return {};
  if (unicode::is_continuation(replacements_[offset])) return {};
  const std::string_view rest = std::string_view(replacements_).substr(offset);
  const std::string_view replacement = rest.substr(0, rest.find('\0'));
  return replacement.size() <= kMaxReplacementBytes ? replacement : std::string_view();
}

}  // namespace quire
