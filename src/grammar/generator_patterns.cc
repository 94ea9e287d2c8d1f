// The patterns that zod and pydantic write for their own kinds of strings.
#include <algorithm>
#include <array>
#include <utility>

#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

// Patterns with lookaheads or inner anchors, and a pattern of the same language without them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPlainForms = {{
    // pydantic's decimal number
    {R"(^(?!^[-+.]*$)[+-]?0*\d*\.?\d*$)", R"(^[+-]?(\d+\.?\d*|\.\d+)$)"},
    // zod's email
    {R"(^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$)",
     R"(^([A-Za-z0-9_'+\-]+\.)*[A-Za-z0-9_'+\-]*[A-Za-z0-9_+\-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$)"},
    // zod's duration
    {R"(^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$)",
     R"(^P(\d+W|(\d+Y(\d+M)?(\d+D)?|\d+M(\d+D)?|\d+D)(T(\d+H(\d+M)?(\d+([.,]\d+)?S)?|\d+M(\d+([.,]\d+)?S)?|\d+([.,]\d+)?S))?|T(\d+H(\d+M)?(\d+([.,]\d+)?S)?|\d+M(\d+([.,]\d+)?S)?|\d+([.,]\d+)?S))$)"},
    // zod's base64
    {R"(^$|^(?:[0-9a-zA-Z+/]{4})*(?:(?:[0-9a-zA-Z+/]{2}==)|(?:[0-9a-zA-Z+/]{3}=))?$)",
     R"(^([0-9a-zA-Z+/]{4})*([0-9a-zA-Z+/]{2}==|[0-9a-zA-Z+/]{3}=)?$)"},
}};

// The beginnings of zod's patterns by format, with ( for (?:. Zod's versions differ in the rest.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kBeginnings = {{
    {"date", R"(^((\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|)"},
    {"date-time", R"(^((\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|)"},
    {"time", R"(^([01]\d|2[0-3]):[0-5]\d)"},
    {"duration", R"(^P()"},
    {"uuid", "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-"},
    {"email", "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+"},
    {"email", "^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@"},
    {"ipv4", "^((25[0-5]|2[0-4]"},
    {"ipv6", "^(([0-9a-fA-F]{1,4}:){7}"},
}};

std::string with_plain_groups(std::string_view pattern) {
  constexpr std::string_view kGroup = "(?:";
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    const bool is_group = pattern.substr(at).starts_with(kGroup);
    out += pattern[at];
    at += is_group ? kGroup.size() : 1;
  }
  return out;
}

}  // namespace

std::string_view plain_form(std::string_view pattern) {
  const auto* const found =
      std::ranges::find(kPlainForms, pattern, [](auto& form) { return form.first; });
  return found == kPlainForms.end() ? pattern : found->second;
}

bool is_generators_pattern(std::string_view format, std::string_view pattern) {
  const std::string plain = with_plain_groups(pattern);
  return std::ranges::any_of(kBeginnings, [&](const auto& beginning) {
    return beginning.first == format && plain.starts_with(beginning.second);
  });
}

}  // namespace quire::grammar
