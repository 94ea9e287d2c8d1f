#include "cli/flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/ascii.h"
#include "base/nearest_word.h"
#include "base/text.h"
#include "cli/unknown_words.h"

namespace quire::cli {
namespace {

std::string described(std::string_view what, const Range& range) {
  const std::string bounds = range.text();
  return bounds.empty() ? std::string(what) : fmt::format("{} {}", what, bounds);
}

// Returns the library's name of the setting, such as "block_size" for --block-size.
std::string field_of(const Flag& flag) {
  if (!flag.field.empty()) return flag.field;
  std::string field = flag.name.substr(flag.name.starts_with("--") ? 2 : 0);
  std::ranges::replace(field, '-', '_');
  return field;
}

// Accepts any bytes, but no empty path, which would mean that the flag is not given.
Result<std::string> parse_path(std::string_view text) {
  if (text.empty()) return unexpected(text, "a path");
  return std::string(text);
}

Result<std::string> parse_output_path(std::string_view text) {
  namespace fs = std::filesystem;
  if (text == "-") return unexpected(text, "a path of a file; ./- names one called -");
  const fs::path path(text);
  std::error_code error;
  const bool has_folder = !path.has_parent_path() || fs::is_directory(path.parent_path(), error);
  if (!path.has_filename() || !has_folder || fs::is_directory(path, error)) {
    return unexpected(text, "a path of a file, in a folder that exists");
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (::access((fs::exists(path, error) ? path : folder).c_str(), W_OK) != 0) {
    return unexpected(text, fmt::format("a path that can be written; {}", std::strerror(errno)));
  }
  return std::string(text);
}

// Does the same as parse_text(), but the error does not show the value.
Result<std::string> parse_secret(std::string_view text) {
  if (!is_valid_utf8(text)) return invalid_argument("expected valid UTF-8; the value is not shown");
  return std::string(text);
}

auto text_parser(std::string_view flag) {
  return is_secret_flag(flag) ? parse_secret : parse_text;
}

}  // namespace

Status unexpected(std::string_view got, std::string_view expected) {
  return invalid_argument(fmt::format("got '{}', expected {}", clipped(got), expected));
}

Result<std::string> parse_text(std::string_view text) {
  if (!is_valid_utf8(text)) return unexpected(text, "valid UTF-8");
  return std::string(text);
}

Result<int64_t> parse_integer(std::string_view text, const Range& range) {
  const auto value = parse_whole<int64_t>(text);
  if (!value || !range.contains(static_cast<double>(*value))) {
    return unexpected(text, described("an integer", range));
  }
  return *value;
}

Result<int64_t> parse_count(std::string_view text, const Range& range) {
  struct Unit {
    char letter;
    int64_t factor;
  };
  constexpr Unit kUnits[] = {{'k', 1'000}, {'K', 1 << 10}, {'m', 1'000'000}, {'M', 1 << 20}};
  int64_t factor = 1;
  std::string_view digits = text;
  for (const Unit& unit : kUnits) {
    if (text.empty() || text.back() != unit.letter) continue;
    factor = unit.factor;
    digits.remove_suffix(1);
  }
  const auto count = parse_whole<int64_t>(digits);
  const double value = static_cast<double>(count.value_or(0)) * static_cast<double>(factor);
  if (!count || std::abs(value) > 1e15 || !range.contains(value)) {
    return unexpected(text,
                      described("an integer", range) + ", such as 8192, 8k (8000), 8K (8192)");
  }
  return *count * factor;
}

Result<double> parse_number(std::string_view text, const Range& range) {
  const auto value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value) || !range.contains(*value)) {
    return unexpected(text, described("a number", range));
  }
  return *value;
}

Result<uint64_t> parse_seed(std::string_view text) {
  const auto value = parse_whole<uint64_t>(text);
  if (!value) return unexpected(text, "an integer in [0, 2^64 - 1]");
  return *value;
}

Result<int64_t> parse_bytes(std::string_view text) {
  constexpr std::string_view kPrefixes = "KMGT";
  const size_t num_digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parse_whole<int64_t>(text.substr(0, num_digits));
  const std::string_view unit = text.substr(num_digits);
  const size_t prefix = unit.empty() ? std::string_view::npos : kPrefixes.find(unit[0]);
  const bool has_prefix = prefix != std::string_view::npos;
  const std::string_view rest = unit.substr(has_prefix ? 1 : 0);
  const bool is_unit = rest.empty() || rest == "B" || (has_prefix && rest == "iB");
  const int shift = has_prefix ? 10 * static_cast<int>(prefix + 1) : 0;
  if (!count || !is_unit || *count > (INT64_MAX >> shift)) {
    return unexpected(text, "a count of bytes, such as 1073741824, 512M or 4GiB");
  }
  return *count << shift;
}

std::string bytes_text(int64_t count) {
  if (count == 0) return "";
  size_t prefix = 0;
  for (; prefix < 4 && count % 1024 == 0; ++prefix) count /= 1024;
  return prefix == 0 ? std::to_string(count) : fmt::format("{}{}", count, " KMGT"[prefix]);
}

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size(); begin += parts.back().size() + 1) {
    parts.push_back(text.substr(begin, text.find(',', begin) - begin));
  }
  return parts;
}

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  for (std::string_view part : split_list(text)) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    const auto id = parse_whole<int32_t>(part);
    if (!id || *id < 0) return unexpected(text, "token ids separated by commas, such as 1,2,3");
    ids.push_back(*id);
  }
  return ids;
}

std::string nearest_flag(std::string_view name, std::span<const std::string> names) {
  constexpr std::string_view kDashes = "--";
  constexpr size_t kLeastLetters = 3;
  const auto letters = [&](std::string_view flag) {
    return flag.starts_with(kDashes) ? flag.substr(kDashes.size()) : flag;
  };
  if (std::ranges::find(names, name) != names.end()) return "";
  std::vector<std::string> candidates;
  for (const std::string& one : names) candidates.emplace_back(letters(one));
  if (const std::string meant = nearest_word(letters(name), candidates); !meant.empty()) {
    const auto found = std::ranges::find(candidates, meant) - candidates.begin();
    return names[static_cast<size_t>(found)];
  }
  const bool is_start = name.starts_with(kDashes) && name.size() >= kDashes.size() + kLeastLetters;
  const auto longer = std::ranges::find_if(
      names, [&](const std::string& one) { return is_start && one.starts_with(name); });
  return longer == names.end() ? "" : *longer;
}

void FlagSet::add(Flag flag) {
  flag.group = group_;
  flag.belongs_to_server = belongs_to_server_;
  flags_.push_back(std::move(flag));
}

void FlagSet::observe(const Observer& observer) {
  for (Flag& flag : flags_) {
    flag.set = [observer, name = flag.name, set = std::move(flag.set)](std::string_view value) {
      observer(name, value);
      return set(value);
    };
  }
}

const Flag* FlagSet::find(std::string_view name) const {
  const auto found = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) {
    return flag.name == name || flag.alias == name;
  });
  return found == flags_.end() ? nullptr : &*found;
}

std::string FlagSet::name_flags(std::string_view message) const {
  std::string text(message);
  for (const Flag& flag : flags_) {
    const std::string field = field_of(flag);
    const std::string quoted = "`" + field + "`";
    for (size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;) {
      text.replace(at, quoted.size(), flag.name);
    }
    if (text.starts_with(field + ":")) text.replace(0, field.size(), flag.name);
    const std::string after_module = "] " + field + ":";
    for (size_t at = 0; (at = text.find(after_module, at)) != std::string::npos;) {
      text.replace(at + 2, field.size(), flag.name);
    }
  }
  return text;
}

void FlagSet::toggle(std::string name, bool* target, std::string help, bool value) {
  add({.name = std::move(name),
       .kind = ValueKind::kNone,
       .help = std::move(help),
       .set = [target, value](std::string_view text) {
         *target = (text != "false") == value;
         return Status();
       }});
}

void FlagSet::on_by_default(const std::string& name, bool* target, std::string help_off) {
  const auto given = std::make_shared<std::optional<bool>>();
  const auto add_half = [&](const std::string& half, const std::string& other, bool value,
                            std::string help) {
    add({.name = half,
         .kind = ValueKind::kNone,
         .help = std::move(help),
         .hidden = value,  // giving it only repeats the default
         .set = [=](std::string_view text) -> Status {
           const bool wanted = (text != "false") == value;
           if (given->value_or(wanted) != wanted) return invalid_argument("contradicts " + other);
           *given = *target = wanted;
           return {};
         }});
  };
  add_half("--no-" + name, "--" + name, false, std::move(help_off));
  add_half("--" + name, "--no-" + name, true, "");
}

void FlagSet::text(std::string name, std::string value_name, std::string* target,
                   std::string help) {
  const auto parse = text_parser(name);
  value(std::move(name), std::move(value_name), target, *target, std::move(help), parse);
}

void FlagSet::file(std::string name, std::string* target, std::string help) {
  value(std::move(name), "FILE", target, *target, std::move(help), parse_path);
  last().kind = ValueKind::kFile;
}

void FlagSet::directory(std::string name, std::string* target, std::string help) {
  value(std::move(name), "DIR", target, *target, std::move(help), parse_path);
  last().kind = ValueKind::kDirectory;
}

void FlagSet::output_file(std::string name, std::string* target, std::string help) {
  value(std::move(name), "FILE", target, *target, std::move(help), parse_output_path);
  last().kind = ValueKind::kFile;
}

void FlagSet::choice(std::string name, std::vector<std::string> choices, std::string* target,
                     std::string help, Synonyms synonyms, Synonyms remedies) {
  const auto parse = [choices, synonyms, remedies](std::string_view text) -> Result<std::string> {
    for (const auto& [synonym, choice] : synonyms) {
      if (text == synonym) text = choice;
    }
    if (std::ranges::find(choices, text) != choices.end()) return std::string(text);
    std::string expected = fmt::format("one of {}", fmt::join(choices, ", "));
    for (const auto& [foreign, remedy] : remedies) {
      if (text == foreign || foreign == kAnyOther)
        return unexpected(text, expected + ": " + remedy);
    }
    return unexpected(text, expected);
  };
  value(std::move(name), fmt::format("{}", fmt::join(choices, "|")), target, *target,
        std::move(help), parse);
  last().choices = std::move(choices);
}

void FlagSet::number(std::string name, int* target, Range range, std::string help) {
  range.min = std::max<double>(range.min, INT32_MIN);
  range.max = std::min<double>(range.max, INT32_MAX);
  value(std::move(name), "N", target, std::to_string(*target), std::move(help),
        [range](std::string_view text) { return parse_integer(text, range); });
}

void FlagSet::count(std::string name, int* target, Range range, std::string help) {
  value(std::move(name), "N", target, std::to_string(*target), std::move(help),
        [range](std::string_view text) { return parse_count(text, range); });
}

void FlagSet::number(std::string name, double* target, Range range, std::string help) {
  value(std::move(name), "X", target, fmt::format("{}", *target), std::move(help),
        [range](std::string_view text) { return parse_number(text, range); });
}

void FlagSet::seed(std::string name, uint64_t* target, std::string help) {
  value(std::move(name), "N", target, std::to_string(*target), std::move(help), parse_seed);
}

void FlagSet::bytes(std::string name, int64_t* target, std::string help) {
  value(std::move(name), "BYTES", target, bytes_text(*target), std::move(help), parse_bytes);
}

void FlagSet::texts(std::string name, std::string value_name, std::vector<std::string>* target,
                    std::string help) {
  const auto parse = text_parser(name);
  add({.name = std::move(name),
       .value_name = std::move(value_name),
       .help = std::move(help),
       .repeatable = true,
       .set = [target, parse](std::string_view value) -> Status {
         QUIRE_ASSIGN_OR_RETURN(std::string text, parse(value));
         target->push_back(std::move(text));
         return {};
       }});
}

}  // namespace quire::cli
