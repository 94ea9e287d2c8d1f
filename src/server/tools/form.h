// Forms: the texts that open, separate and close the parts of a model's output.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"
#include "server/tools/text_pattern.h"

namespace quire::server {

// One piece of a form.
struct FormPart {
  enum class Kind : uint8_t {
    kLiteral,
    kSpace,    // {ws}: JSON white space, which may be empty
    kName,     // {name}: a tool's name
    kKey,      // {key}: an argument's name
    kAny,      // {any}: text without the first byte of the next literal; may be empty
    kIdBegin,  // {id} … {/id}: the text between is the call's id
    kIdEnd,
    kPattern,  // its groups "name" and "id" are the tool's name and the call's id
  };
  Kind kind = Kind::kLiteral;
  std::string text = {};  // the text of a literal
  std::shared_ptr<const TextPattern> pattern = {};
};

// A text with placeholders, such as "<function={name}>". A placeholder ends where the first byte of
// the next literal occurs, and {name} also at a byte that names cannot have. So matching needs no
// backtracking, but the text of a placeholder cannot contain that first byte.
struct Form {
  std::vector<FormPart> parts = {};
};

// Fails if the text has more than 256 bytes.
Result<Form> parse_form(std::string_view text);
// Returns a form that is one literal, in which braces have no meaning.
Form literal_form(std::string_view text);
Result<Form> pattern_form(std::string_view pattern);
// Returns whether a match of the form has a tool's name.
bool names_tool(const Form& form);
bool has_pattern(const Form& form);
// Returns the first literal of a form, or "" if the form has no literal.
std::string_view first_literal(const Form& form);
// Returns the form with optional white space before it.
Form after_space(Form form);

using Match = TextPattern::Result;

struct FormMatch {
  Match result = Match::kNo;
  size_t length = 0;
  std::string_view name = {};  // of {name}, {key} or the pattern
  std::string_view id = {};
};

// Matches the form at the start of `text`. kMore: the result depends on text that has not arrived;
// only if not `is_end`. A placeholder takes at most 256 bytes.
FormMatch match_form(const Form& form, std::string_view text, bool is_end);

// Returns whether the form's text with this name, and with other placeholders empty, yields the
// name when it is matched.
bool can_hold(const Form& form, std::string_view name);

}  // namespace quire::server
