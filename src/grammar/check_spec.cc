#include "grammar/check_spec.h"

#include <fmt/format.h>

#include "base/text.h"

namespace quire::grammar {
namespace {

Status check_text(std::string_view what, std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes) {
    return invalid_argument(
        fmt::format("[grammar] {} is too long; got {} bytes, expected at most {}", what,
                    text.size(), max_bytes));
  }
  if (text.find('\0') != std::string_view::npos || !is_valid_utf8(text)) {
    return invalid_argument(
        fmt::format("[grammar] {} is no text; expected UTF-8 without null characters", what));
  }
  return {};
}

Status check_choices(const GrammarSpec& spec, const GrammarLimits& limits) {
  if (spec.choices.empty() || spec.choices.size() > limits.max_choices) {
    return invalid_argument(fmt::format("[grammar] got {} choices, expected 1 to {}",
                                        spec.choices.size(), limits.max_choices));
  }
  size_t num_bytes = 0;
  for (const std::string& choice : spec.choices) {
    QUIRE_RETURN_IF_ERROR(check_text("a choice", choice, limits.max_text_bytes));
    num_bytes += choice.size();
  }
  if (num_bytes > limits.max_text_bytes) {
    return invalid_argument(
        fmt::format("[grammar] the choices are too long; got {} bytes, expected at most {}",
                    num_bytes, limits.max_text_bytes));
  }
  return {};
}

}  // namespace

Status check_spec(const GrammarSpec& spec, const GrammarLimits& limits) {
  switch (spec.kind) {
    case GrammarSpec::Kind::kJsonObject:
      return {};
    case GrammarSpec::Kind::kChoice:
      return check_choices(spec, limits);
    case GrammarSpec::Kind::kJsonSchema:
      QUIRE_RETURN_IF_ERROR(check_text("the JSON schema", spec.text, limits.max_text_bytes));
      return check_schema(spec.text, limits);
    case GrammarSpec::Kind::kRegex:
      QUIRE_RETURN_IF_ERROR(check_text("the regex", spec.text, limits.max_text_bytes));
      return check_regex("the regex", spec.text, limits);
    case GrammarSpec::Kind::kGrammar:
      QUIRE_RETURN_IF_ERROR(check_text("the grammar", spec.text, limits.max_text_bytes));
      return check_ebnf(spec.text, limits);
  }
  return internal_error("[grammar] unknown kind of grammar");
}

}  // namespace quire::grammar
