#include "server/tools/call_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace quire::server {
namespace {

using Content = TemplateField::Content;
using PartKind = FormPart::Kind;

constexpr std::string_view kName = "call.function.name";
constexpr std::string_view kArguments = "(call.function.arguments or {})";

// Returns an expression that writes the text. As plain template text, it could open an expression.
std::string literal_source(std::string_view text) {
  if (text.empty()) return {};
  std::string out = "{{ '";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "' }}";
}

std::string written(std::string_view expression) {
  return fmt::format("{{{{ {} }}}}", expression);
}

std::string as_json(std::string_view expression) {
  return written(std::string(expression) + " | tojson");
}

// Returns the source of a form, with the expression `name` in place of the name. Omits the optional
// white space and text that the form allows.
std::string form_source(const Form& form, std::string_view name) {
  std::string out;
  for (const FormPart& part : form.parts) {
    if (part.kind == PartKind::kLiteral) out += literal_source(part.text);
    if (part.kind == PartKind::kName || part.kind == PartKind::kKey) out += written(name);
  }
  return out;
}

// Returns the first form without a pattern; null: none.
const Form* plain_form(const std::vector<Form>& forms) {
  const auto found =
      std::ranges::find_if(forms, [](const Form& form) { return !has_pattern(form); });
  return found == forms.end() ? nullptr : &*found;
}

std::string first_form(const std::vector<Form>& forms, std::string_view name) {
  const Form* const form = plain_form(forms);
  return form == nullptr ? std::string() : form_source(*form, name);
}

// Returns a source that writes `text` if the value is a string, and `other` otherwise.
std::string by_type(std::string_view text, std::string_view other) {
  return fmt::format("{{% if value is string %}}{}{{% else %}}{}{{% endif %}}", text, other);
}

std::string for_each_argument(std::string_view body) {
  return fmt::format("{{% for key, value in {}.items() %}}{}{{% endfor %}}", kArguments, body);
}

std::string tagged_value(const TemplateField& field, ArgumentTag::Type unfit,
                         std::string_view value) {
  const auto tag =
      std::ranges::find_if(field.tags, [&](const ArgumentTag& one) { return one.type != unfit; });
  if (tag == field.tags.end()) return {};
  const std::string space = literal_source(field.trim == Trim::kNewline ? "\n" : "");
  return form_source(tag->open, "key") + space + std::string(value) + space +
         literal_source(tag->close);
}

// Returns the source of a call's arguments; empty: a pattern reads them.
std::string arguments_source(const TemplateField& field) {
  const std::string text = written("value");
  const std::string json = as_json("value");
  switch (field.content) {
    case Content::kText:
      return {};
    case Content::kCallObject:
      return literal_source(fmt::format("{{\"{}\": ", field.name_key)) + as_json(kName) +
             literal_source(fmt::format(", \"{}\": ", field.arguments_key)) + as_json(kArguments) +
             literal_source("}");
    case Content::kArguments:
      if (!field.notation.python) return as_json(kArguments);
      return for_each_argument("{{ key }}=" + json + "{{ ', ' if not loop.last }}") +
             literal_source(")");
    case Content::kTags:
      return for_each_argument(by_type(tagged_value(field, ArgumentTag::Type::kJson, text),
                                       tagged_value(field, ArgumentTag::Type::kString, json)));
    case Content::kBody:
      if (field.body.tag_pattern != nullptr) return {};
      return for_each_argument(written("key") + literal_source(field.body.kv_sep) +
                               by_type(text, json) + literal_source(field.body.line_sep));
  }
  return {};
}

}  // namespace

std::string call_template(const ResponseTemplate& dialect) {
  const TemplateField* const field = dialect.field(TemplateField::Target::kCalls);
  if (field == nullptr) return {};
  const Form* opening = plain_form(field->open);
  if (opening == nullptr) opening = plain_form(field->start);
  const std::string arguments = arguments_source(*field);
  if (opening == nullptr || arguments.empty()) return {};
  const std::string open = form_source(*opening, kName);
  const std::string next = field->next.empty() ? open : first_form(field->next, kName);
  return fmt::format(
      "{{% for call in calls %}}{{% if loop.first %}}{}{{% else %}}{}{{% endif %}}{}{}{{% endfor "
      "%}}"
      "{}",
      open, next, arguments, first_form(field->close, kName), first_form(field->end, kName));
}

}  // namespace quire::server
