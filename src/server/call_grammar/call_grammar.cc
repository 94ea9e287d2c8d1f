#include "server/call_grammar/call_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "server/call_grammar/argument_grammar.h"
#include "server/call_grammar/grammar_rules.h"
#include "server/openai/tool_schemas.h"

namespace quire::server {
namespace {

using Content = TemplateField::Content;
using PartKind = FormPart::Kind;
using Target = TemplateField::Target;

bool begins_alike(const Form& left, const Form& right) {
  const std::string_view a = first_literal(left);
  const std::string_view b = first_literal(right);
  return !a.empty() && !b.empty() && (a.starts_with(b) || b.starts_with(a));
}

bool begins_with(const Form& form, std::string_view text) {
  const FormPart& first = form.parts.front();
  return text.empty() || (first.kind == PartKind::kLiteral && first.text.starts_with(text));
}

// Returns the form without `text`, with which it begins.
Form without(Form form, std::string_view text) {
  form.parts.front().text.erase(0, text.size());
  if (form.parts.front().text.empty()) form.parts.erase(form.parts.begin());
  return form;
}

class CallGrammar {
 public:
  explicit CallGrammar(const CallGrammarInput& input)
      : input_(input), rules_(input.markers, input.end_ids) {}

  Result<GrammarSpec> make() {
    for (const Tool& tool : input_.tools) rules_.check_schema(tool, arguments_schema(tool));
    glue_ = glue();
    std::vector<std::string> fields;
    for (const TemplateField& field : input_.calls.fields) {
      if (field.target != Target::kCalls) continue;
      QUIRE_ASSIGN_OR_RETURN(const std::string calls, calls_of(field));
      if (!calls.empty()) fields.push_back(calls);
    }
    if (fields.empty() && !has_form_) return needs_pattern();
    for (const Tool& tool : input_.tools) {
      if (!written_.contains(tool.name)) return cannot_write(tool, "its name", "rename it");
    }
    std::string root = input_.opened.empty() ? reasoning() : std::string();
    append_part(glue_, root);
    append_part(alternatives(fields), root);
    return std::move(rules_).take(root);
  }

 private:
  // --- Around the calls ---

  // Returns the rule of the texts that may occur between the parts of an output.
  std::string glue() {
    std::vector<std::string> drops;
    for (const Form& form : input_.calls.drop) {
      const std::optional<Sequence> drop = rules_.sequence(form, {});
      if (drop && !drop->ends && !drop->ebnf.empty()) drops.push_back(drop->ebnf);
    }
    if (drops.empty()) return "ws";
    return rules_.add_rule("glue", fmt::format("ws | {}", alternatives(drops)));
  }

  // Returns the EBNF of optional reasoning; empty: none is possible.
  std::string reasoning() {
    const TemplateField* const field =
        input_.reasoning == nullptr ? nullptr : input_.reasoning->field(Target::kReasoning);
    if (field == nullptr) return {};
    std::vector<std::string> open;
    for (const auto* const forms : {&field->open, &field->start}) {
      for (const Form& form : *forms) {
        const std::optional<Sequence> opening = rules_.sequence(form, {});
        if (opening && !opening->ends) open.push_back(opening->ebnf);
      }
    }
    std::vector<std::string> ends;
    std::string close;
    for (const auto* const forms : {&field->close, &field->close_before}) {
      for (const Form& form : *forms) {
        const std::optional<Sequence> closing = rules_.sequence(form, {});
        if (!closing) return {};
        if (forms == &field->close && !closing->ends && close.empty()) close = closing->ebnf;
        if (!first_literal(form).empty()) ends.emplace_back(first_literal(form));
      }
    }
    if (open.empty() || close.empty()) return {};
    const std::string rule = rules_.add_rule(
        "reasoning",
        fmt::format("ws {} {} {}", alternatives(open), rules_.text_without(ends), close));
    return rule + "?";
  }

  // --- Calls ---

  struct Openings {
    std::vector<std::string> first = {};  // EBNF, up to the content
    std::vector<std::string> bare = {};   // openings without literals, which open no list
    std::vector<std::string> again = {};  // openings after other calls
    std::vector<std::string> next = {};   // within a list of calls
  };

  Openings openings(const TemplateField& field, std::string_view tool_name) {
    Openings out;
    const std::string name = grammar::ebnf_string(tool_name);
    const auto add = [&](const Form& form, std::vector<std::string>& texts) {
      has_form_ = has_form_ || !has_pattern(form);
      if (names_tool(form) && !has_pattern(form) && !can_hold(form, tool_name)) return;
      const bool is_opened = &texts == &out.first && !input_.opened.empty();
      const std::optional<Sequence> text =
          rules_.sequence(is_opened ? without(form, input_.opened) : form, name);
      if (text && !text->ends) texts.push_back(text->ebnf);
    };
    for (const Form& form : field.open) {
      if (!begins_alike(form, field.open.front())) continue;
      if (begins_with(form, input_.opened)) add(form, out.first);
      add(form, out.again);
    }
    for (const Form& form : field.start) {
      if (!input_.opened.empty()) break;
      add(form, first_literal(form).empty() ? out.bare : out.first);
    }
    if (!field.next.empty()) add(field.next.front(), out.next);
    return out;
  }

  // Returns the EBNF of the field's calls; empty if it has none.
  Result<std::string> calls_of(const TemplateField& field) {
    if (field.content == Content::kBody && field.body.tag_pattern != nullptr) return std::string();
    std::optional<Sequence> close = Sequence();
    if (!field.close.empty()) close = rules_.sequence(field.close.front(), {});
    if (!close) return std::string();
    Openings calls;  // EBNF of whole calls
    const auto add = [&](const Openings& opening, const std::string& content) {
      const std::string rest = content + (close->ebnf.empty() ? "" : " " + close->ebnf);
      const auto add_to = [&](const std::vector<std::string>& texts,
                              std::vector<std::string>& out) {
        if (!texts.empty()) out.push_back(alternatives(texts) + " " + rest);
      };
      add_to(opening.first, calls.first);
      add_to(opening.bare, calls.bare);
      add_to(opening.again, calls.again);
      add_to(opening.next, calls.next);
    };
    if (field.content == Content::kCallObject) {
      add(openings(field, {}), call_object(field));
    } else {
      for (const Tool& tool : input_.tools) {
        const Openings opening = openings(field, tool.name);
        if (opening.first.empty() && opening.bare.empty()) continue;
        QUIRE_ASSIGN_OR_RETURN(const std::string content, arguments_ebnf(rules_, field, tool));
        written_.insert(tool.name);
        add(opening, rules_.add_rule("arguments", content));
      }
    }
    std::vector<std::string> ends;
    bool has_end = false;  // a token that ends the sequence
    for (const Form& form : field.end) {
      const std::optional<Sequence> end = rules_.sequence(form, {});
      if (!end) continue;
      ends.push_back(end->ebnf.empty() ? "\"\"" : end->ebnf);
      has_end = has_end || end->ends;
    }
    const bool several = input_.several && !close->ends;
    // Returns the EBNF of a list: its first call, further calls, and its end.
    const auto list = [&](const std::vector<std::string>& opened, bool needs_end) {
      std::string text = rules_.add_rule("first", fmt::format("{}", fmt::join(opened, " | ")));
      if (several && !calls.next.empty()) {
        const std::string next =
            rules_.add_rule("next", fmt::format("{}", fmt::join(calls.next, " | ")));
        append_part(fmt::format("({})*", next), text);
      }
      if (!ends.empty()) {
        append_part(fmt::format("({}){}", fmt::join(ends, " | "), needs_end ? "" : "?"), text);
      }
      return text;
    };
    std::vector<std::string> all;
    if (!calls.first.empty()) all.push_back(list(calls.first, true));
    if (!calls.bare.empty()) all.push_back(list(calls.bare, false));
    if (all.empty()) return std::string();
    std::string text = rules_.add_rule("calls", fmt::format("{}", fmt::join(all, " | ")));
    const bool repeats = several && !has_end && !calls.again.empty();
    if (repeats) append_part(fmt::format("({} {})*", glue_, list(calls.again, true)), text);
    return text;
  }

  // Returns the rule of an object with the name and the arguments.
  std::string call_object(const TemplateField& field) {
    std::vector<Tool> tools;
    for (const Tool& tool : input_.tools) {
      std::string escaped;
      append_escaped(escaped, tool.name);
      if (escaped != tool.name) continue;  // the parser compares the name as it is written
      tools.push_back(tool);
      written_.insert(tool.name);
    }
    CallSchema schema =
        call_object_schema(tools, {.name = field.name_key, .arguments = field.arguments_key});
    return rules_.value_rule({.text = std::move(schema.text), .tools = std::move(schema.tools)});
  }

  const CallGrammarInput& input_;
  GrammarRules rules_;
  std::string glue_;
  bool has_form_ = false;                       // calls open by a form without a pattern
  std::set<std::string, std::less<>> written_;  // the names of tools that a field can write
};

}  // namespace

Result<GrammarSpec> call_grammar(const CallGrammarInput& input) {
  return CallGrammar(input).make();
}

}  // namespace quire::server
