#include "server/tools/parser_plan.h"

#include <algorithm>
#include <utility>

#include "server/tools/call_reader.h"
#include "server/tools/dialects.h"

namespace quire::server {
namespace {

using Content = TemplateField::Content;
using Target = TemplateField::Target;

}  // namespace

// Keeps the best match of several forms.
struct ParserPlan::Search {
  const ParserPlan& plan;
  std::string_view text;
  bool is_end;
  FieldMatch best = {};
  bool is_undecided = false;

  void consider(const std::vector<Form>& forms, const TemplateField* field) {
    for (const Form& form : forms) consider(form, field);
  }

  void consider(const Form& form, const TemplateField* field) {
    const FormMatch match = match_form(form, text, is_end);
    Match result = match.result;
    if (result == Match::kYes && field != nullptr && field->target == Target::kCalls) {
      const bool is_known =
          field->content == Content::kCallObject || has_name(plan.tool_names_, match.name);
      result =
          is_known ? plan.begins_content(*field, text.substr(match.length), is_end) : Match::kNo;
    }
    is_undecided = is_undecided || result == Match::kMore;
    if (result != Match::kYes) return;
    if (best.result == Match::kYes && best.length >= match.length) return;
    best = {.result = Match::kYes,
            .length = match.length,
            .field = field,
            .name = match.name,
            .id = match.id};
  }

  FieldMatch decide() const { return is_undecided ? FieldMatch{.result = Match::kMore} : best; }
};

ParserPlan::ParserPlan(const OutputParserConfig& config)
    : codes_(config.token_markers), tool_names_(config.tool_names), schemas_(config.tool_schemas) {
  const ResponseTemplate* calls = find_dialect(config.tool_call_parser);
  const ResponseTemplate* reasoning = find_reasoning_dialect(config.reasoning_parser);
  if (config.call_template != nullptr) calls = config.call_template.get();
  if (config.reasoning_template != nullptr) reasoning = config.reasoning_template.get();
  const bool has_calls = calls != nullptr && !tool_names_.empty();
  if (reasoning != nullptr) add(*reasoning, false, true);
  if (calls != nullptr) add(*calls, has_calls, false);
  if (calls != nullptr) short_ids_ = calls->short_ids;
  // Patterns match plain text, without codes, so markers are then recognized as text.
  const bool has_patterns = std::ranges::any_of(fields_, [](const TemplateField& field) {
    return std::ranges::any_of(field.open, has_pattern) ||
           std::ranges::any_of(field.close, has_pattern);
  });
  if (has_patterns) codes_.use_text();
  for (TemplateField& field : fields_) encode(field);
  encode(drop_);
  for (const TemplateField& field : fields_) {
    if (field.target == Target::kReasoning && reasoning_ == nullptr) reasoning_ = &field;
    for (const Form& form : field.open) add_first_byte(form);
  }
  for (const Form& form : drop_) add_first_byte(form);
}

// The form begins with a literal or a pattern.
void ParserPlan::add_first_byte(const Form& form) {
  const FormPart& part = form.parts.front();
  const int byte = part.pattern != nullptr ? part.pattern->first_byte()
                                           : static_cast<unsigned char>(part.text.front());
  if (byte < 0) may_begin_.fill(true);
  if (byte >= 0) may_begin_[static_cast<size_t>(byte)] = true;
}

// Both templates may have fields of content and markers without text; a field that opens with the
// same form twice does no harm.
void ParserPlan::add(const ResponseTemplate& dialect, bool with_calls, bool with_reasoning) {
  for (const TemplateField& field : dialect.fields) {
    if (field.target == Target::kCalls && !with_calls) continue;
    if (field.target == Target::kReasoning && !with_reasoning) continue;
    const bool is_implicit = field.open.empty() && field.start.empty();
    if (!is_implicit) fields_.push_back(field);
  }
  drop_.insert(drop_.end(), dialect.drop.begin(), dialect.drop.end());
}

void ParserPlan::encode(std::vector<Form>& forms) const {
  if (codes_.empty()) return;
  for (Form& form : forms) {
    for (FormPart& part : form.parts) {
      if (part.kind == FormPart::Kind::kLiteral) part.text = codes_.encode_literal(part.text);
    }
  }
}

void ParserPlan::encode(TemplateField& field) const {
  for (auto* const forms :
       {&field.open, &field.start, &field.next, &field.end, &field.close, &field.close_before}) {
    encode(*forms);
  }
  for (auto& [open, close] : field.notation.string_delims) {
    open = codes_.encode_literal(open);
    close = codes_.encode_literal(close);
  }
  for (ArgumentTag& tag : field.tags) {
    tag.close = codes_.encode_literal(tag.close);
    std::vector<Form> open = {std::move(tag.open)};
    encode(open);
    tag.open = std::move(open.front());
  }
}

std::string_view ParserPlan::schema(std::string_view tool_name) const {
  const auto found = std::ranges::find(tool_names_, tool_name);
  const auto idx = static_cast<size_t>(found - tool_names_.begin());
  return idx < schemas_.size() ? std::string_view(schemas_[idx]) : std::string_view();
}

// Returns whether the content of a call can begin with `rest`: a JSON object must follow, or the
// end of a call without arguments.
Match ParserPlan::begins_content(const TemplateField& field, std::string_view rest,
                                 bool is_end) const {
  const bool is_json = field.content == Content::kCallObject ||
                       (field.content == Content::kArguments && !field.notation.python);
  if (!is_json) return Match::kYes;
  if (rest.empty()) return is_end ? Match::kNo : Match::kMore;
  if (rest.front() == '{') return Match::kYes;
  if (field.content == Content::kCallObject) return Match::kNo;
  Match result = Match::kNo;
  for (const Form& form : field.close) {
    const Match match = match_form(form, rest, is_end).result;
    if (match == Match::kYes || (match == Match::kMore && result == Match::kNo)) result = match;
  }
  return result;
}

FieldMatch ParserPlan::find(std::string_view text, bool is_end, const Preceding& before) const {
  Search search{.plan = *this, .text = text, .is_end = is_end};
  const bool may_open = may_begin(text.front());
  for (const TemplateField& field : fields_) {
    if (may_open) search.consider(field.open, &field);
    const bool may_start = field.target == Target::kReasoning ? before.may_reason : before.is_start;
    if (may_start) search.consider(field.start, &field);
  }
  if (before.after_call != nullptr) {
    search.consider(before.after_call->next, before.after_call);
    search.consider(before.after_call->end, nullptr);
  }
  if (may_open) search.consider(drop_, nullptr);
  return search.decide();
}

FieldMatch ParserPlan::find_call(std::string_view text, bool is_end) const {
  Search search{.plan = *this, .text = text, .is_end = is_end};
  for (const TemplateField& field : fields_) {
    if (field.target == Target::kCalls) search.consider(field.open, &field);
  }
  return search.decide();
}

FieldMatch ParserPlan::find_reasoning(std::string_view text, bool is_end) const {
  Search search{.plan = *this, .text = text, .is_end = is_end};
  for (const TemplateField& field : fields_) {
    if (field.target != Target::kReasoning) continue;
    search.consider(field.start, &field);
    for (const Form& form : field.open) search.consider(after_space(form), &field);
  }
  return search.decide();
}

Match ParserPlan::ends_call(const TemplateField& field, std::string_view text, bool is_end) const {
  Match result = Match::kNo;
  const auto consider = [&](const Form& form) {
    const Match match = match_form(form, text, is_end).result;
    if (match == Match::kYes || (match == Match::kMore && result == Match::kNo)) result = match;
  };
  for (const auto* const forms : {&field.close, &field.end}) {
    for (const Form& form : *forms) consider(form);
  }
  for (const Form& form : field.open) consider(form);
  return result;
}

}  // namespace quire::server
