#include "hub/cache/gguf_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"

namespace quire::hub {
namespace {

constexpr std::string_view kGgufEnd = ".gguf";

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool starts_ignoring_case(std::string_view text, std::string_view start) {
  return equals_ignoring_case(text.substr(0, start.size()), start);
}

// The part of a path that all shards share, and the number of this shard.
struct ShardName {
  std::string_view stem;
  size_t number = 1;
  size_t count = 1;
};

// Parses "STEM-00002-of-00003.gguf". A file with any other name is its own only shard.
ShardName parse_shard(std::string_view path) {
  constexpr size_t kDigits = 5;
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kSuffix = 1 + kDigits + kOf.size() + kDigits;
  const std::string_view whole = path.substr(0, path.size() - kGgufEnd.size());
  if (whole.size() <= kSuffix) return {whole};
  const std::string_view suffix = whole.substr(whole.size() - kSuffix);
  const auto number = parse_whole<size_t>(suffix.substr(1, kDigits));
  const auto count = parse_whole<size_t>(suffix.substr(kSuffix - kDigits));
  const bool is_shard = suffix.front() == '-' && suffix.substr(1 + kDigits, kOf.size()) == kOf &&
                        number && count && *number >= 1 && *number <= *count;
  if (!is_shard) return {whole};
  return {whole.substr(0, whole.size() - kSuffix), *number, *count};
}

// Whether a part of a name is a type of weights, such as Q4_K_M, IQ2_XXS, TQ1_0, F16 or MXFP4.
bool is_type(std::string_view part) {
  for (const std::string_view start : {"Q", "IQ", "TQ"}) {
    if (starts_ignoring_case(part, start) && part.size() > start.size() &&
        is_digit(part[start.size()])) {
      return true;
    }
  }
  constexpr std::array<std::string_view, 7> kFloats = {"F16",  "F32",   "BF16", "FP16",
                                                       "FP32", "MXFP4", "NVFP4"};
  return std::ranges::any_of(
      kFloats, [&](std::string_view start) { return starts_ignoring_case(part, start); });
}

// Returns the last type in the path, with Unsloth's prefix "UD-" if it has one; empty if the path
// has no type.
std::string_view type_in(std::string_view stem) {
  constexpr std::string_view kEnds = "-./";
  constexpr std::string_view kDynamic = "UD-";
  for (size_t end = stem.size(); end > 0;) {
    const size_t before = stem.find_last_of(kEnds, end - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (is_type(stem.substr(begin, end - begin))) {
      const size_t prefix = begin - std::min(begin, kDynamic.size());
      const bool is_part = prefix == 0 || kEnds.find(stem[prefix - 1]) != std::string_view::npos;
      const bool is_dynamic =
          is_part && equals_ignoring_case(stem.substr(prefix, begin - prefix), kDynamic);
      return stem.substr(is_dynamic ? prefix : begin, end - (is_dynamic ? prefix : begin));
    }
    end = begin == 0 ? 0 : before;
  }
  return {};
}

// Whether the text has the part as a whole word, in any case. A word may begin after '_', but not
// end before it: UD_Q4_K_M holds Q4_K_M, but not Q4_K.
bool holds(std::string_view text, std::string_view part) {
  for (size_t begin = 0; begin + part.size() <= text.size(); ++begin) {
    if (!equals_ignoring_case(text.substr(begin, part.size()), part)) continue;
    const size_t end = begin + part.size();
    const bool begins = begin == 0 || !is_alphanumeric(text[begin - 1]);
    const bool ends = end == text.size() || (!is_alphanumeric(text[end]) && text[end] != '_');
    if (begins && ends) return true;
  }
  return false;
}

const GgufSet* find_tag(const std::vector<GgufSet>& sets, std::string_view tag) {
  const auto find = [&](const auto& matches) {
    const auto found = std::ranges::find_if(sets, matches);
    return found == sets.end() ? nullptr : &*found;
  };
  const GgufSet* const named = find([&](const GgufSet& set) { return set.has_name(tag); });
  if (named != nullptr) return named;
  return find([&](const GgufSet& set) { return holds(parse_shard(set.files.front()).stem, tag); });
}

}  // namespace

bool GgufSet::has_name(std::string_view text) const {
  if (equals_ignoring_case(text, tag)) return true;
  return std::ranges::any_of(files, [&](std::string_view path) {
    for (const std::string_view name : {path, file_name(path)}) {
      const std::string_view stem = name.substr(0, name.size() - kGgufEnd.size());
      if (equals_ignoring_case(text, name) || equals_ignoring_case(text, stem)) return true;
    }
    return false;
  });
}

bool is_gguf_companion(std::string_view path) {
  const std::string_view name = file_name(path);
  if (!name.ends_with(kGgufEnd)) return false;
  constexpr std::array<std::string_view, 4> kDrafters = {"mtp-", "eagle3-", "dflash-", "dspark-"};
  const auto has = [&](std::string_view part) {
    const auto equal = [](char a, char b) { return to_lower(a) == to_lower(b); };
    return std::search(name.begin(), name.end(), part.begin(), part.end(), equal) != name.end();
  };
  return has("mmproj") || has("imatrix") ||
         std::ranges::any_of(
             kDrafters, [&](std::string_view start) { return starts_ignoring_case(name, start); });
}

std::vector<GgufSet> group_gguf_files(std::vector<std::string> paths) {
  std::erase_if(paths, [](std::string_view path) {
    return !path.ends_with(kGgufEnd) || path.size() == kGgufEnd.size() || is_gguf_companion(path);
  });
  // Also sorts the shards of a set, because their numbers have the same width.
  std::ranges::sort(paths);
  std::vector<GgufSet> sets;
  std::map<std::pair<std::string, size_t>, size_t> set_of;  // by stem and number of shards
  std::set<std::string> types;                              // in lower case
  for (std::string& path : paths) {
    const ShardName shard = parse_shard(path);
    const auto [found, is_new] =
        set_of.try_emplace({std::string(shard.stem), shard.count}, sets.size());
    if (is_new) {
      std::string tag(type_in(shard.stem));
      std::string type = tag;
      std::ranges::transform(type, type.begin(), to_lower);
      if (tag.empty() || !types.insert(std::move(type)).second) tag = shard.stem;
      sets.push_back({.tag = std::move(tag), .files = {}, .num_files = shard.count});
    }
    sets[found->second].files.push_back(std::move(path));
  }
  return sets;
}

const GgufSet* choose_gguf(const std::vector<GgufSet>& sets, std::string_view tag) {
  if (!tag.empty()) return find_tag(sets, tag);
  for (const std::string_view usual : {"Q4_K_M", "Q8_0"}) {
    const GgufSet* const found = find_tag(sets, usual);
    if (found != nullptr) return found;
  }
  return sets.empty() ? nullptr : &sets.front();
}

std::string list_of_tags(const std::vector<GgufSet>& sets) {
  constexpr size_t kMaxListed = 40;
  std::vector<std::string> tags;
  for (const GgufSet& set : sets) {
    if (tags.size() == kMaxListed) break;
    tags.push_back(clipped(set.tag));
  }
  std::string text = fmt::format("{}", fmt::join(tags, ", "));
  if (sets.size() > kMaxListed) text += fmt::format(" and {} more", sets.size() - kMaxListed);
  return text;
}

}  // namespace quire::hub
