// Rewrites the keywords that restrict strings into forms that XGrammar enforces. It ignores lengths
// beside a format, and reads only one of "pattern" and "format".
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

using Fields = std::vector<KeywordField>;

// Beside a pattern that only repeats a class, the lengths bound the repeats. The matcher counts
// these, instead of having a state per repeat (patches/xgrammar/counts.patch). Beside any other
// pattern, the lengths must not exclude any text that matches.
Result<Fields> pattern_fields(const Members& members, std::string_view pattern,
                              const GrammarLimits& limits) {
  QUIRE_ASSIGN_OR_RETURN(RegexText regex,
                         plain_regex("a pattern of the JSON schema", plain_form(pattern), limits,
                                     RegexForm::kJsonString));
  const int64_t least = count_of(members, "minLength").value_or(0);
  const int64_t most = count_of(members, "maxLength").value_or(RegexText::kUnbounded);
  const int64_t low = std::max(least, regex.min_length);
  const int64_t high = std::min(most, regex.max_length);
  if (low > high) {
    const bool is_too_long = least > regex.max_length;
    return empty_range(is_too_long ? "minLength" : "maxLength",
                       std::to_string(is_too_long ? least : most), "pattern", clipped(pattern));
  }
  const bool restricts_lengths = low > regex.min_length || high < regex.max_length;
  if (!regex.repeated && restricts_lengths) {
    return not_supported("\"minLength\" or \"maxLength\" beside a \"pattern\" of other lengths",
                         "write the length into the pattern, as in ^[a-z]{1,9}$");
  }
  constexpr int64_t kMaxStates = 4;
  const bool is_bounded = high != RegexText::kUnbounded;
  if (regex.repeated && (low > kMaxStates || (is_bounded && high > kMaxStates))) {
    Fields fields = {{"pattern", json_string(fmt::format("^{}*$", *regex.repeated))},
                     {"minLength", std::to_string(low)}};
    if (is_bounded) fields.push_back({"maxLength", std::to_string(high)});
    return fields;
  }
  if (restricts_lengths) {
    regex.text =
        fmt::format("^{}{{{},{}}}$", *regex.repeated, low, is_bounded ? std::to_string(high) : "");
  }
  return Fields{{"pattern", json_string(regex.text)}};
}

// XGrammar ignores lengths beside a format. So the lengths must not exclude any text of the format,
// unless the format has a form of bounded length.
Result<Fields> format_fields(const Members& members, std::string_view name,
                             const GrammarLimits& limits) {
  if (name.size() == 5 && name.starts_with("uuid") && name[4] >= '1' && name[4] <= '8') {
    return pattern_fields(members,
                          fmt::format("^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{}[0-9a-f]{{3}}-"
                                      "[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$",
                                      name[4]),
                          limits);
  }
  const StringFormat* const format = find_format(name);
  if (format == nullptr) {
    return not_supported(fmt::format("the \"format\" \"{}\"", clipped(name)),
                         "leave it out, or write it as a \"pattern\"");
  }
  const int64_t least = count_of(members, "minLength").value_or(0);
  const int64_t most = count_of(members, "maxLength").value_or(RegexText::kUnbounded);
  if (least <= format->min_length && most >= format->max_length) {
    return Fields{{"format", json_string(name)}};
  }
  // The matcher may exceed the maximum length of a uri by the end of an escape: two characters of
  // %2F. A uri cannot end within its scheme, which has up to 33 characters.
  constexpr int64_t kEscape = 2;
  constexpr int64_t kLeastUri = 64;
  if (name == "uri" && least <= format->min_length && most >= kLeastUri) {
    return Fields{{"format", json_string(name)}, {"maxLength", std::to_string(most - kEscape)}};
  }
  const std::string bounded = least <= format->min_length ? bounded_format(name, most) : "";
  if (!bounded.empty()) return pattern_fields({}, bounded, limits);
  return not_supported(
      fmt::format("the \"format\" \"{}\" beside this \"minLength\" or \"maxLength\"", name),
      "leave the lengths out, or write the format as a \"pattern\"");
}

}  // namespace

Result<std::vector<KeywordField>> string_fields(const Members& members,
                                                const GrammarLimits& limits) {
  QUIRE_RETURN_IF_ERROR(check_counts(members, "minLength", "maxLength"));
  std::string_view format;
  if (members.contains("format") && members.at("format").get_string().get(format)) {
    return invalid_argument("[grammar] the JSON schema's \"format\" is not a string");
  }
  const bool has_format = !format.empty() && !is_loose_format(format);
  if (!members.contains("pattern")) {
    if (has_format) return format_fields(members, format, limits);
    Fields fields;
    for (const std::string_view keyword : {"minLength", "maxLength"}) {
      if (!members.contains(keyword)) continue;
      fields.push_back({keyword, std::string(simdjson::minify(members.at(keyword)))});
    }
    return fields;
  }
  std::string_view pattern;
  if (members.at("pattern").get_string().get(pattern)) {
    return invalid_argument("[grammar] the JSON schema's \"pattern\" is not a string");
  }
  // A format that is not JSON Schema's own, such as zod's "cuid", is the name of its pattern.
  if (has_format && find_format(format) != nullptr && !is_generators_pattern(format, pattern)) {
    return not_supported("\"format\" beside \"pattern\"", "leave one of the two out");
  }
  return pattern_fields(members, pattern, limits);
}

}  // namespace quire::grammar
