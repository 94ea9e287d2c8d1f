#include "server/tools/form.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "server/tools/json_scanner.h"

namespace quire::server {
namespace {

using Kind = FormPart::Kind;

constexpr size_t kMaxPlaceholderBytes = 256;
constexpr size_t kMaxFormBytes = 256;

constexpr std::array<std::pair<std::string_view, Kind>, 6> kPlaceholders = {{
    {"{ws}", Kind::kSpace},
    {"{name}", Kind::kName},
    {"{key}", Kind::kKey},
    {"{any}", Kind::kAny},
    {"{id}", Kind::kIdBegin},
    {"{/id}", Kind::kIdEnd},
}};

// The byte 0xFF is excluded, because the code of a marker begins with it (marker_codes.h).
bool is_name_byte(char c) {
  constexpr std::string_view kOthers = "<>()[]{}\"'`,;=|\xff";
  return static_cast<unsigned char>(c) > 0x20 && c != '\x7f' &&
         kOthers.find(c) == std::string_view::npos;
}

// Returns the first byte of the next literal, which ends the placeholder before it; 0: there is no
// literal, and only a byte that names cannot have, such as white space, ends a name.
char end_of_placeholder(const Form& form, size_t idx) {
  for (size_t i = idx + 1; i < form.parts.size(); ++i) {
    const FormPart& part = form.parts[i];
    if (part.kind == Kind::kLiteral) return part.text.front();
    if (part.kind == Kind::kSpace && form.parts[idx].kind == Kind::kName) break;
  }
  return '\0';
}

class FormMatcher {
 public:
  FormMatcher(const Form& form, std::string_view text, bool is_end)
      : form_(form), text_(text), is_end_(is_end) {}

  FormMatch run() {
    for (size_t i = 0; i < form_.parts.size(); ++i) {
      const Match result = match_part(i);
      if (result != Match::kYes) return {.result = result};
    }
    match_.result = Match::kYes;
    match_.length = at_;
    return match_;
  }

 private:
  Match match_part(size_t idx) {
    switch (form_.parts[idx].kind) {
      case Kind::kLiteral:
        return match_literal(form_.parts[idx].text);
      case Kind::kPattern:
        return match_pattern(*form_.parts[idx].pattern);
      case Kind::kIdBegin:
        id_begin_ = at_;
        return Match::kYes;
      case Kind::kIdEnd:
        match_.id = text_.substr(id_begin_, at_ - id_begin_);
        return Match::kYes;
      default:
        return match_placeholder(form_.parts[idx].kind, end_of_placeholder(form_, idx));
    }
  }

  Match match_literal(std::string_view literal) {
    const std::string_view rest = text_.substr(at_, literal.size());
    if (!literal.starts_with(rest)) return Match::kNo;
    if (rest.size() < literal.size()) return is_end_ ? Match::kNo : Match::kMore;
    at_ += literal.size();
    return Match::kYes;
  }

  Match match_pattern(const TextPattern& pattern) {
    const TextPattern::Found found = pattern.match(text_.substr(at_), is_end_);
    if (found.result != Match::kYes) return found.result;
    if (found.begin != 0) return Match::kNo;
    at_ += found.end;
    match_.name = found.group("name");
    match_.id = found.group("id");
    return Match::kYes;
  }

  bool takes(Kind kind, char c, char end) const {
    if (kind == Kind::kSpace) return is_json_space(c);
    if (c == end) return false;
    return kind != Kind::kName || is_name_byte(c);
  }

  Match match_placeholder(Kind kind, char end) {
    const size_t begin = at_;
    while (at_ < text_.size() && takes(kind, text_[at_], end)) {
      if (++at_ - begin > kMaxPlaceholderBytes) return Match::kNo;
    }
    if (at_ == text_.size() && !is_end_) return Match::kMore;
    if (kind == Kind::kName || kind == Kind::kKey) {
      match_.name = text_.substr(begin, at_ - begin);
      if (match_.name.empty()) return Match::kNo;
    }
    return Match::kYes;
  }

  const Form& form_;
  std::string_view text_;
  bool is_end_;
  size_t at_ = 0;
  size_t id_begin_ = 0;
  FormMatch match_;
};

}  // namespace

Result<Form> parse_form(std::string_view text) {
  if (text.size() > kMaxFormBytes) {
    return invalid_argument(fmt::format("a form is too long; got {} bytes, expected at most {}",
                                        text.size(), kMaxFormBytes));
  }
  Form form;
  std::string literal;
  const auto end_literal = [&] {
    if (literal.empty()) return;
    form.parts.push_back({.kind = Kind::kLiteral, .text = std::exchange(literal, {})});
  };
  while (!text.empty()) {
    const auto* const found = std::ranges::find_if(
        kPlaceholders, [&](const auto& known) { return text.starts_with(known.first); });
    if (found == kPlaceholders.end()) {
      literal += text.front();
      text.remove_prefix(1);
      continue;
    }
    end_literal();
    form.parts.push_back({.kind = found->second});
    text.remove_prefix(found->first.size());
  }
  end_literal();
  return form;
}

Form literal_form(std::string_view text) {
  Form form;
  form.parts.push_back({.kind = Kind::kLiteral, .text = std::string(text)});
  return form;
}

Result<Form> pattern_form(std::string_view pattern) {
  Form form;
  FormPart part{.kind = Kind::kPattern};
  QUIRE_ASSIGN_OR_RETURN(part.pattern, TextPattern::compile(pattern));
  form.parts.push_back(std::move(part));
  return form;
}

bool names_tool(const Form& form) {
  return std::ranges::any_of(form.parts, [](const FormPart& part) {
    return part.kind == Kind::kName ||
           (part.kind == Kind::kPattern && part.pattern->has_group("name"));
  });
}

bool has_pattern(const Form& form) {
  return std::ranges::any_of(form.parts,
                             [](const FormPart& part) { return part.kind == Kind::kPattern; });
}

std::string_view first_literal(const Form& form) {
  const auto found = std::ranges::find(form.parts, Kind::kLiteral, &FormPart::kind);
  return found == form.parts.end() ? std::string_view() : std::string_view(found->text);
}

Form after_space(Form form) {
  const bool has_space = !form.parts.empty() && form.parts.front().kind == Kind::kSpace;
  if (!has_space) form.parts.insert(form.parts.begin(), {.kind = Kind::kSpace});
  return form;
}

FormMatch match_form(const Form& form, std::string_view text, bool is_end) {
  // A quick test, because most texts differ from the form in their first byte.
  if (!form.parts.empty() && !text.empty()) {
    const FormPart& first = form.parts.front();
    const bool has_literal = first.kind == Kind::kLiteral && !first.text.empty();
    if (has_literal && first.text.front() != text.front()) return {};
  }
  return FormMatcher(form, text, is_end).run();
}

bool can_hold(const Form& form, std::string_view name) {
  std::string text;  // with other placeholders empty
  for (const FormPart& part : form.parts) {
    if (part.kind == Kind::kLiteral) text += part.text;
    if (part.kind == Kind::kName || part.kind == Kind::kKey) text += name;
  }
  const FormMatch match = match_form(form, text, true);
  return match.result == Match::kYes && match.length == text.size() && match.name == name;
}

}  // namespace quire::server
