#include "server/call_grammar/grammar_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"

namespace quire::server {
namespace {

using PartKind = FormPart::Kind;

// Rules that all grammars have. White space is bounded, because a weak model may never end it.
constexpr std::string_view kCommonRules =
    "ws ::= \"\" | \" \" | \"\\n\" [ \\t]{0,20} | \"\\n\\n\"\n"
    "key ::= [a-zA-Z_] [a-zA-Z0-9_]{0,63}\n";

// Returns the EBNF of {any}; empty if the text could contain the byte that ends it.
std::string any_text(const Form& form, size_t idx, bool in_id) {
  for (size_t i = idx + 1; i < form.parts.size(); ++i) {
    const FormPart& part = form.parts[i];
    if (part.kind != PartKind::kLiteral) continue;
    const char end = part.text.front();
    const bool is_word =
        is_alphanumeric(end) || std::string_view("_. -").find(end) != std::string_view::npos;
    if (is_word) return {};
    break;
  }
  return in_id ? R"([a-zA-Z0-9_.\-]{0,32})" : R"([a-zA-Z0-9_. \-]{0,32})";
}

}  // namespace

std::string alternatives(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? texts.front() : fmt::format("({})", fmt::join(texts, " | "));
}

void append_part(std::string_view ebnf, std::string& out) {
  if (ebnf.empty()) return;
  if (!out.empty()) out += ' ';
  out += ebnf;
}

Status cannot_write(const Tool& tool, std::string_view what, std::string_view remedy) {
  return invalid_argument(
      fmt::format("[grammar] tool \"{}\": {}, which the model's format of tool calls cannot write; "
                  "{}, or leave the call unbound (tool_choice auto without strict tools)",
                  clipped(tool.name), what, remedy));
}

Status needs_pattern() {
  return invalid_argument(
      "[grammar] the model's response template opens a tool call, or reads its arguments, by a "
      "regular expression, of which no grammar can be made; leave the call unbound (tool_choice "
      "auto without strict tools)");
}

Sequence GrammarRules::literal(std::string_view text) {
  Sequence out;
  std::string plain;
  const auto end_plain = [&] {
    if (!plain.empty()) append_part(grammar::ebnf_string(std::exchange(plain, {})), out.ebnf);
  };
  while (!text.empty()) {
    const TokenMarker* longest = nullptr;
    for (const TokenMarker& marker : markers_) {
      const bool fits = text.starts_with(marker.text);
      if (fits && (longest == nullptr || marker.text.size() > longest->text.size())) {
        longest = &marker;
      }
    }
    if (longest == nullptr) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    end_plain();
    const int32_t id = longest->token_id;
    out.ends = std::ranges::find(end_ids_, id) != end_ids_.end();
    if (out.ends) return out;
    append_part(fmt::format("Token({})", id), out.ebnf);
    std::vector<int32_t>& used = spec_.token_ids;
    if (std::ranges::find(used, id) == used.end()) used.push_back(id);
    text.remove_prefix(longest->text.size());
  }
  end_plain();
  return out;
}

std::optional<Sequence> GrammarRules::sequence(const Form& form, std::string_view name) {
  if (has_pattern(form)) return std::nullopt;
  Sequence out;
  bool in_id = false;
  for (size_t i = 0; i < form.parts.size() && !out.ends; ++i) {
    const FormPart& part = form.parts[i];
    if (part.kind == PartKind::kIdBegin || part.kind == PartKind::kIdEnd) {
      in_id = part.kind == PartKind::kIdBegin;
    } else if (part.kind == PartKind::kLiteral) {
      const Sequence text = literal(part.text);
      // Omits white space if only the end of the sequence follows.
      const bool is_empty = text.ends && text.ebnf.empty() && i <= 1;
      if (is_empty) out.ebnf.clear();
      append_part(text.ebnf, out.ebnf);
      out.ends = text.ends;
    } else if (part.kind == PartKind::kSpace) {
      append_part("ws", out.ebnf);
    } else if (part.kind == PartKind::kAny) {
      append_part(any_text(form, i, in_id), out.ebnf);
    } else {
      append_part(name, out.ebnf);
    }
  }
  return out;
}

std::string GrammarRules::add_rule(std::string_view kind, std::string_view body) {
  std::string name = fmt::format("{}{}", kind, num_rules_++);
  rules_ += fmt::format("{} ::= {}\n", name, body);
  return name;
}

std::string GrammarRules::text_without(const std::vector<std::string>& others) {
  std::vector<std::string> quoted;
  for (const std::string& other : others) quoted.push_back(grammar::ebnf_string(other));
  std::string& rule = texts_[fmt::format("{}", fmt::join(quoted, ", "))];
  if (rule.empty()) {
    rule = add_rule("text", fmt::format("TagDispatch(loop_after_dispatch=false, excludes=({}))",
                                        fmt::join(quoted, ", ")));
  }
  return rule;
}

std::string GrammarRules::value_rule(GrammarValue value) {
  const std::string key =
      fmt::format("{} {} {}", static_cast<int>(value.kind), value.barred, value.text);
  std::string& rule = values_[key];
  if (rule.empty()) {
    rule = fmt::format("value{}", num_rules_++);
    value.rule = rule;
    spec_.values.push_back(std::move(value));
  }
  return rule;
}

void GrammarRules::check_schema(const Tool& tool, std::string schema) {
  spec_.values.push_back({.kind = GrammarValue::Kind::kChecked,
                          .text = std::move(schema),
                          .tools = {{.path = "#", .tool = tool.name}}});
}

GrammarSpec GrammarRules::take(std::string_view root) && {
  spec_.text = fmt::format("root ::= {}\n{}{}", root, kCommonRules, rules_);
  return std::move(spec_);
}

}  // namespace quire::server
