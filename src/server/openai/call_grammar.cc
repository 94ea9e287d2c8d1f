#include "server/openai/call_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "server/openai/tool_schemas.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

using Content = TemplateField::Content;
using Element = simdjson::dom::element;
using PartKind = FormPart::Kind;
using Object = simdjson::dom::object;
using Target = TemplateField::Target;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxLeaves = 256;  // of one property

// Rules that all grammars have. White space is bounded, because a weak model may never end it.
constexpr std::string_view kCommonRules =
    "ws ::= \"\" | \" \" | \"\\n\" [ \\t]{0,20} | \"\\n\\n\"\n"
    "key ::= [a-zA-Z_] [a-zA-Z0-9_]{0,63}\n";

// The schema of any value but a string.
constexpr std::string_view kNoString =
    R"({"anyOf":[{"type":["number","boolean","null"]},{"type":"array","items":true},)"
    R"({"type":"object","additionalProperties":true}]})";

// In a class: the bytes with which numbers, containers, true, false and None begin, and white
// space.
constexpr std::string_view kOtherBeginnings =
    R"(\u002d0-9tTfFnN\u005b\u007b\u0022\u0020\u0009\u000a\u000d)";

// EBNF of a form.
struct Sequence {
  std::string ebnf = {};
  bool ends = false;  // with a token that ends the sequence, so nothing follows
};

// One form of a property's value: text or JSON.
struct Leaf {
  bool is_text = false;
  std::string ebnf = {};
};

struct Property {
  std::string_view name;
  std::optional<Element> schema;  // none: any value
  bool is_required = false;
};

struct Properties {
  std::vector<Property> list = {};
  bool is_open = false;  // any properties
};

std::string alternatives(const std::vector<std::string>& texts) {
  return texts.size() == 1 ? texts.front() : fmt::format("({})", fmt::join(texts, " | "));
}

void append(std::string_view ebnf, std::string& out) {
  if (ebnf.empty()) return;
  if (!out.empty()) out += ' ';
  out += ebnf;
}

const FormPart* first_literal(const Form& form) {
  const auto found = std::ranges::find(form.parts, PartKind::kLiteral, &FormPart::kind);
  return found == form.parts.end() ? nullptr : &*found;
}

bool begins_alike(const Form& left, const Form& right) {
  const FormPart* const a = first_literal(left);
  const FormPart* const b = first_literal(right);
  return a != nullptr && b != nullptr &&
         (a->text.starts_with(b->text) || b->text.starts_with(a->text));
}

bool has_pattern(const Form& form) {
  return std::ranges::any_of(form.parts,
                             [](const FormPart& part) { return part.kind == PartKind::kPattern; });
}

bool begins_with(const Form& form, std::string_view text) {
  const FormPart& first = form.parts.front();
  return text.empty() || (first.kind == PartKind::kLiteral && first.text.starts_with(text));
}

// The form without the text that it begins with.
Form without(Form form, std::string_view text) {
  form.parts.front().text.erase(0, text.size());
  if (form.parts.front().text.empty()) form.parts.erase(form.parts.begin());
  return form;
}

// The form's text with the name in its place and nothing in place of other placeholders.
std::string text_with(const Form& form, std::string_view name) {
  std::string text;
  for (const FormPart& part : form.parts) {
    if (part.kind == PartKind::kLiteral) text += part.text;
    if (part.kind == PartKind::kName || part.kind == PartKind::kKey) text += name;
  }
  return text;
}

// Returns whether the parser reads this name in the form.
bool can_hold(const Form& form, std::string_view name) {
  const std::string text = text_with(form, name);
  const FormMatch match = match_form(form, text, true);
  return match.result == Match::kYes && match.length == text.size() && match.name == name;
}

Status cannot_write(const Tool& tool, std::string_view what, std::string_view remedy) {
  return invalid_argument(
      fmt::format("[grammar] tool \"{}\": {}, which the model's format of tool calls cannot write; "
                  "{}, or leave the call unbound (tool_choice auto without strict tools)",
                  clipped(tool.name), what, remedy));
}

class CallGrammar {
 public:
  explicit CallGrammar(const CallGrammarInput& input) : input_(input) {}

  Result<GrammarSpec> make() {
    spec_.kind = GrammarSpec::Kind::kComposed;
    for (const Tool& tool : input_.tools) {
      spec_.values.push_back({.kind = GrammarValue::Kind::kChecked,
                              .text = arguments_schema(tool),
                              .tools = {{.path = "#", .tool = tool.name}}});
    }
    glue_ = glue();
    std::vector<std::string> fields;
    for (const TemplateField& field : input_.calls.fields) {
      if (field.target != Target::kCalls) continue;
      QUIRE_ASSIGN_OR_RETURN(const std::string calls, calls_of(field));
      if (!calls.empty()) fields.push_back(calls);
    }
    if (fields.empty() && !has_form_) return no_form();
    for (const Tool& tool : input_.tools) {
      if (!written_.contains(tool.name)) return cannot_write(tool, "its name", "rename it");
    }
    std::string root = input_.opened.empty() ? reasoning() : std::string();
    append(glue_, root);
    append(alternatives(fields), root);
    spec_.text = fmt::format("root ::= {}\n{}{}", root, kCommonRules, rules_);
    return std::move(spec_);
  }

 private:
  static Status no_form() {
    return invalid_argument(
        "[grammar] the model's response template opens a tool call, or reads its arguments, by a "
        "regular expression, of which no grammar can be made; leave the call unbound (tool_choice "
        "auto without strict tools)");
  }

  // --- Texts ---

  // Returns the EBNF of a literal, with tokens in place of its markers.
  Sequence literal(std::string_view text) {
    Sequence out;
    std::string plain;
    const auto end_plain = [&] {
      if (!plain.empty()) append(grammar::ebnf_string(std::exchange(plain, {})), out.ebnf);
    };
    while (!text.empty()) {
      const TokenMarker* longest = nullptr;
      for (const TokenMarker& marker : input_.markers) {
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
      out.ends = std::ranges::find(input_.end_ids, id) != input_.end_ids.end();
      if (out.ends) return out;
      append(fmt::format("Token({})", id), out.ebnf);
      std::vector<int32_t>& used = spec_.token_ids;
      if (std::ranges::find(used, id) == used.end()) used.push_back(id);
      text.remove_prefix(longest->text.size());
    }
    end_plain();
    return out;
  }

  // Returns the EBNF of a form; none if it has a pattern. `name` is EBNF.
  std::optional<Sequence> sequence(const Form& form, std::string_view name) {
    if (has_pattern(form)) return std::nullopt;
    Sequence out;
    bool in_id = false;
    for (size_t i = 0; i < form.parts.size() && !out.ends; ++i) {
      const FormPart& part = form.parts[i];
      if (part.kind == PartKind::kIdBegin || part.kind == PartKind::kIdEnd) {
        in_id = part.kind == PartKind::kIdBegin;
      } else if (part.kind == PartKind::kLiteral) {
        const Sequence text = literal(part.text);
        // White space alone before the end of the sequence is of no use.
        const bool is_empty = text.ends && text.ebnf.empty() && i <= 1;
        if (is_empty) out.ebnf.clear();
        append(text.ebnf, out.ebnf);
        out.ends = text.ends;
      } else if (part.kind == PartKind::kSpace) {
        append("ws", out.ebnf);
      } else if (part.kind == PartKind::kAny) {
        append(any_text(form, i, in_id), out.ebnf);
      } else {
        append(name, out.ebnf);
      }
    }
    return out;
  }

  // Words that do not have the byte which ends them.
  static std::string any_text(const Form& form, size_t idx, bool in_id) {
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

  std::string add_rule(std::string_view kind, std::string_view body) {
    std::string name = fmt::format("{}{}", kind, num_rules_++);
    rules_ += fmt::format("{} ::= {}\n", name, body);
    return name;
  }

  // Text that has none of the others.
  std::string text_without(const std::vector<std::string>& others) {
    std::vector<std::string> quoted;
    for (const std::string& other : others) quoted.push_back(grammar::ebnf_string(other));
    std::string& rule = texts_[fmt::format("{}", fmt::join(quoted, ", "))];
    if (rule.empty()) {
      rule = add_rule("text", fmt::format("TagDispatch(loop_after_dispatch=false, excludes=({}))",
                                          fmt::join(quoted, ", ")));
    }
    return rule;
  }

  std::string value_rule(GrammarValue value) {
    const std::string key =
        fmt::format("{} {} {}", static_cast<int>(value.kind), value.barred.size(), value.text);
    std::string& rule = values_[key];
    if (rule.empty()) {
      rule = fmt::format("value{}", num_rules_++);
      value.rule = rule;
      spec_.values.push_back(std::move(value));
    }
    return rule;
  }

  // --- Around the calls ---

  // The texts that may stand between the parts of an output.
  std::string glue() {
    std::vector<std::string> drops;
    for (const Form& form : input_.calls.drop) {
      const std::optional<Sequence> drop = sequence(form, {});
      if (drop && !drop->ends && !drop->ebnf.empty()) drops.push_back(drop->ebnf);
    }
    if (drops.empty()) return "ws";
    return add_rule("glue", fmt::format("ws | {}", alternatives(drops)));
  }

  // Returns the EBNF of optional reasoning; empty: none is possible.
  std::string reasoning() {
    const TemplateField* const field =
        input_.reasoning == nullptr ? nullptr : input_.reasoning->field(Target::kReasoning);
    if (field == nullptr) return {};
    std::vector<std::string> open;
    for (const auto* const forms : {&field->open, &field->start}) {
      for (const Form& form : *forms) {
        const std::optional<Sequence> opening = sequence(form, {});
        if (opening && !opening->ends) open.push_back(opening->ebnf);
      }
    }
    std::vector<std::string> ends;
    std::string close;
    for (const auto* const forms : {&field->close, &field->close_before}) {
      for (const Form& form : *forms) {
        const std::optional<Sequence> closing = sequence(form, {});
        if (!closing) return {};
        if (forms == &field->close && !closing->ends && close.empty()) close = closing->ebnf;
        if (first_literal(form) != nullptr) ends.push_back(first_literal(form)->text);
      }
    }
    if (open.empty() || close.empty()) return {};
    const std::string rule = add_rule(
        "reasoning", fmt::format("ws {} {} {}", alternatives(open), text_without(ends), close));
    return rule + "?";
  }

  // --- Calls ---

  struct Openings {
    std::vector<std::string> first = {};  // EBNF, up to the content
    std::vector<std::string> bare = {};   // openings without literals: no list is open
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
          sequence(is_opened ? without(form, input_.opened) : form, name);
      if (text && !text->ends) texts.push_back(text->ebnf);
    };
    for (const Form& form : field.open) {
      if (!begins_alike(form, field.open.front())) continue;
      if (begins_with(form, input_.opened)) add(form, out.first);
      add(form, out.again);
    }
    for (const Form& form : field.start) {
      if (!input_.opened.empty()) break;
      add(form, first_literal(form) == nullptr ? out.bare : out.first);
    }
    if (!field.next.empty()) add(field.next.front(), out.next);
    return out;
  }

  // Returns the EBNF of the field's calls; empty if it has none.
  Result<std::string> calls_of(const TemplateField& field) {
    if (field.content == Content::kBody && field.body.tag_pattern != nullptr) return std::string();
    std::optional<Sequence> close = Sequence();
    if (!field.close.empty()) close = sequence(field.close.front(), {});
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
        QUIRE_ASSIGN_OR_RETURN(const std::string content, arguments(field, tool));
        written_.insert(tool.name);
        add(opening, add_rule("arguments", content));
      }
    }
    std::vector<std::string> ends;
    bool has_end = false;  // a token that ends the sequence
    for (const Form& form : field.end) {
      const std::optional<Sequence> end = sequence(form, {});
      if (!end) continue;
      ends.push_back(end->ebnf.empty() ? "\"\"" : end->ebnf);
      has_end = has_end || end->ends;
    }
    const bool several = input_.several && !close->ends;
    // A list: its first call, the next ones, and its end.
    const auto list = [&](const std::vector<std::string>& opened, bool needs_end) {
      std::string text = add_rule("first", fmt::format("{}", fmt::join(opened, " | ")));
      if (several && !calls.next.empty()) {
        const std::string next = add_rule("next", fmt::format("{}", fmt::join(calls.next, " | ")));
        append(fmt::format("({})*", next), text);
      }
      if (!ends.empty()) {
        append(fmt::format("({}){}", fmt::join(ends, " | "), needs_end ? "" : "?"), text);
      }
      return text;
    };
    std::vector<std::string> all;
    if (!calls.first.empty()) all.push_back(list(calls.first, true));
    if (!calls.bare.empty()) all.push_back(list(calls.bare, false));
    if (all.empty()) return std::string();
    std::string text = add_rule("calls", fmt::format("{}", fmt::join(all, " | ")));
    const bool repeats = several && !has_end && !calls.again.empty();
    if (repeats) append(fmt::format("({} {})*", glue_, list(calls.again, true)), text);
    return text;
  }

  // An object with the name and the arguments.
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
    return value_rule({.text = std::move(schema.text), .tools = std::move(schema.tools)});
  }

  Result<std::string> arguments(const TemplateField& field, const Tool& tool) {
    if (field.content == Content::kArguments && !field.notation.python) {
      return value_rule(
          {.text = arguments_schema(tool), .tools = {{.path = "#", .tool = tool.name}}});
    }
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                           JsonDocument::parse(tool.parameters, "parameters"));
    const Element root = document.root();
    QUIRE_ASSIGN_OR_RETURN(const Properties properties, properties_of(tool, root));
    if (field.content == Content::kArguments) return python_arguments(tool, properties, root);
    if (field.content == Content::kBody) return line_arguments(field, tool, properties, root);
    return tagged_arguments(field, tool, properties, root);
  }

  // Returns the properties of the object that the schema describes.
  static Result<Properties> properties_of(const Tool& tool, Element schema) {
    const Element root = schema;
    Object object;
    for (int depth = 0;; ++depth) {
      if (depth > kMaxDepth || schema.get(object)) {
        return cannot_write(tool, "its schema's root is no object", "give the root properties");
      }
      std::string_view uri;
      if (object["$ref"].get(uri)) break;
      const bool is_found =
          uri == "#" || (uri.starts_with("#/") && !root.at_pointer(uri.substr(1)).get(schema));
      if (!is_found) return cannot_write(tool, "its schema's \"$ref\"", "write the object itself");
    }
    for (const std::string_view keyword :
         {"anyOf", "oneOf", "allOf", "enum", "const", "patternProperties", "propertyNames",
          "minProperties", "maxProperties"}) {
      if (object[keyword].error() != simdjson::SUCCESS) continue;
      return cannot_write(tool, fmt::format("its schema's root has \"{}\"", keyword),
                          "write one object with its properties");
    }
    Properties out;
    Object members;
    if (!object["properties"].get(members)) {
      for (const auto& [name, member] : members)
        out.list.push_back({.name = name, .schema = member});
    } else {
      bool allows = true;
      out.is_open = object["additionalProperties"].get(allows) != simdjson::SUCCESS || allows;
    }
    simdjson::dom::array required;
    if (object["required"].get(required)) return out;
    for (const Element item : required) {
      std::string_view name;
      if (item.get(name)) continue;
      const auto same = std::ranges::find(out.list, name, &Property::name);
      if (same == out.list.end()) {
        out.list.push_back({.name = name, .schema = {}, .is_required = true});
      } else {
        same->is_required = true;
      }
    }
    return out;
  }

  static std::string schema_of(const Property& property, const Element& root) {
    return property.schema ? part_of_schema(*property.schema, root) : "true";
  }

  // f(a=1, b="x"), from the first argument to the parenthesis that closes the call.
  Result<std::string> python_arguments(const Tool& tool, const Properties& properties,
                                       const Element& root) {
    const auto literal_rule = [&](std::string schema) {
      return value_rule({.kind = GrammarValue::Kind::kPython,
                         .text = std::move(schema),
                         .tools = {{.path = "#", .tool = tool.name}}});
    };
    if (properties.is_open) {
      const std::string pair = "key \"=\" " + literal_rule("true");
      return fmt::format("({} (\",\" ws {})*)? \")\"", pair, pair);
    }
    // `rest`: the arguments from a property on, after others; `first`: without others before them.
    std::string rest;
    std::string first;
    for (auto property = properties.list.rbegin(); property != properties.list.rend(); ++property) {
      const std::string_view name = property->name;
      const auto is_word = [](char c) {
        return is_alphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
      };
      if (name.empty() || !std::ranges::all_of(name, is_word) || is_digit(name.front())) {
        if (!property->is_required) continue;
        return cannot_write(tool, fmt::format("the property '{}'", clipped(name)), "rename it");
      }
      const std::string pair = fmt::format("{} {}", grammar::ebnf_string(std::string(name) + "="),
                                           literal_rule(schema_of(*property, root)));
      const std::string pair_and_rest = rest.empty() ? pair : pair + " " + rest;
      std::string new_first = pair_and_rest;
      std::string new_rest = "\",\" ws " + pair_and_rest;
      if (!property->is_required) {
        new_first += " | " + (first.empty() ? "\"\"" : first);
        new_rest += " | " + (rest.empty() ? "\"\"" : rest);
      }
      first = add_rule("first", new_first);
      rest = add_rule("rest", new_rest);
    }
    return first.empty() ? "\")\"" : first + " \")\"";
  }

  // --- Values that are written as plain text ---

  // How a field's values end, and the white space around them.
  struct Notation {
    std::vector<std::string> barred = {};
    Trim trim = Trim::kNone;
    bool is_typed = false;  // each tag says whether its value is a string
  };

  Result<std::string> tagged_arguments(const TemplateField& field, const Tool& tool,
                                       const Properties& properties, const Element& root) {
    Notation notation = {.trim = field.trim};
    const ArgumentTag* text_tag = nullptr;
    const ArgumentTag* json_tag = nullptr;
    for (const ArgumentTag& tag : field.tags) {
      const bool is_schema = tag.type == ArgumentTag::Type::kSchema;
      if (text_tag == nullptr && tag.type != ArgumentTag::Type::kJson) text_tag = &tag;
      if (json_tag == nullptr && tag.type != ArgumentTag::Type::kString) json_tag = &tag;
      if (!is_schema) notation.is_typed = true;
      notation.barred.push_back(tag.close);
      if (const FormPart* const open = first_literal(tag.open))
        notation.barred.push_back(open->text);
    }
    if (!field.close.empty() && first_literal(field.close.front()) != nullptr) {
      notation.barred.push_back(first_literal(field.close.front())->text);
    }
    std::ranges::sort(notation.barred);
    notation.barred.erase(std::unique(notation.barred.begin(), notation.barred.end()),
                          notation.barred.end());
    if (text_tag == nullptr || json_tag == nullptr) return no_form();
    const auto wrapped = [&](const ArgumentTag& tag, std::string_view key,
                             const std::string& value) {
      const std::optional<Sequence> open = sequence(tag.open, key);
      const char* const newline = field.trim == Trim::kNewline ? " \"\\n\" " : " ";
      return open ? fmt::format("{}{}{}{}{}", open->ebnf, newline, value, newline,
                                literal(tag.close).ebnf)
                  : std::string();
    };
    if (properties.is_open) {
      std::string any = wrapped(*text_tag, "key", text_without(notation.barred));
      if (text_tag != json_tag) {
        any += " | " + wrapped(*json_tag, "key",
                               value_rule({.text = std::string(kNoString),
                                           .tools = {{.path = "#", .tool = tool.name}},
                                           .barred = notation.barred}));
      }
      return fmt::format("({})*", any);
    }
    std::string out;
    for (const Property& property : properties.list) {
      if (!can_hold(text_tag->open, property.name) || !can_hold(json_tag->open, property.name)) {
        if (!property.is_required) continue;
        return cannot_write(tool, fmt::format("the property '{}'", clipped(property.name)),
                            "rename it");
      }
      std::vector<std::string> texts;
      std::vector<std::string> values;
      QUIRE_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves,
                             leaves_of(notation, tool, property, root));
      for (const Leaf& leaf : leaves) {
        (leaf.is_text || text_tag == json_tag ? texts : values).push_back(leaf.ebnf);
      }
      const std::string key = grammar::ebnf_string(property.name);
      std::vector<std::string> forms;
      if (!texts.empty()) forms.push_back(wrapped(*text_tag, key, alternatives(texts)));
      if (!values.empty()) forms.push_back(wrapped(*json_tag, key, alternatives(values)));
      const std::string rule = add_rule("argument", fmt::format("{}", fmt::join(forms, " | ")));
      append(property.is_required ? rule : rule + "?", out);
    }
    return out.empty() ? std::string("\"\"") : out;
  }

  // Lines "key: value".
  Result<std::string> line_arguments(const TemplateField& field, const Tool& tool,
                                     const Properties& properties, const Element& root) {
    const BodyFormat& body = field.body;
    if (!body.value_parser.empty()) {
      return cannot_write(tool,
                          fmt::format("the values that the parser '{}' reads", body.value_parser),
                          "leave out the template's value_parser");
    }
    Notation notation = {.barred = {body.line_sep}, .trim = Trim::kSpace};
    for (const Form& form : field.close) {
      if (first_literal(form) != nullptr) notation.barred.push_back(first_literal(form)->text);
    }
    if (properties.is_open) {
      return fmt::format("(key {} {} {})*", grammar::ebnf_string(body.kv_sep),
                         text_without(notation.barred), grammar::ebnf_string(body.line_sep));
    }
    std::string out;
    for (const Property& property : properties.list) {
      const bool has_sep = property.name.find(body.kv_sep) != std::string_view::npos ||
                           property.name.find(body.line_sep) != std::string_view::npos;
      if (has_sep || trimmed(property.name) != property.name || property.name.empty()) {
        if (!property.is_required) continue;
        return cannot_write(tool, fmt::format("the property '{}'", clipped(property.name)),
                            "rename it");
      }
      QUIRE_ASSIGN_OR_RETURN(const std::vector<Leaf> leaves,
                             leaves_of(notation, tool, property, root));
      std::vector<std::string> texts;
      for (const Leaf& leaf : leaves) texts.push_back(leaf.ebnf);
      const std::string line =
          fmt::format("{} {} {}", grammar::ebnf_string(std::string(property.name) + body.kv_sep),
                      alternatives(texts), grammar::ebnf_string(body.line_sep));
      const std::string rule = add_rule("line", line);
      append(property.is_required ? rule : rule + "?", out);
    }
    return out.empty() ? std::string("\"\"") : out;
  }

  // Collects the forms of a value.
  struct Leaves {
    const Notation& notation;
    const Tool& tool;
    const Element& root;
    std::vector<Leaf> out = {};
    bool has_text = false;  // a string that is not given in whole
    bool has_pattern = false;
    bool has_json = false;  // a value other than null that is not given in whole
    size_t num_visits = 0;
  };

  Result<std::vector<Leaf>> leaves_of(const Notation& notation, const Tool& tool,
                                      const Property& property, const Element& root) {
    Leaves leaves = {.notation = notation, .tool = tool, .root = root};
    if (property.schema) {
      QUIRE_RETURN_IF_ERROR(add_leaves(*property.schema, 0, leaves));
    } else {
      leaves.out.push_back({.is_text = true, .ebnf = text_without(notation.barred)});
    }
    // Text that begins as another value would be read as that value.
    if (leaves.has_text && leaves.has_json && !notation.is_typed) {
      if (leaves.has_pattern) {
        return cannot_write(
            tool,
            fmt::format("a restricted string beside other types in '{}'", clipped(property.name)),
            "let the property have one type");
      }
      for (Leaf& leaf : leaves.out) {
        if (!leaf.is_text) continue;
        leaf.ebnf = fmt::format("(\"\" | [^{}{}] {})", kOtherBeginnings,
                                escaped_first_bytes(notation), text_without(notation.barred));
      }
    }
    if (leaves.out.empty()) {
      return cannot_write(
          tool, fmt::format("the property '{}', which allows no value,", clipped(property.name)),
          "allow one");
    }
    return std::move(leaves.out);
  }

  static std::string escaped_first_bytes(const Notation& notation) {
    std::string out;
    for (const std::string& text : notation.barred) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text.front()));
    }
    return out;
  }

  Status add_leaves(const Element& schema, int depth, Leaves& leaves) {
    if (depth > kMaxDepth || ++leaves.num_visits > kMaxLeaves) {
      return cannot_write(leaves.tool, "a property whose schema has too many alternatives",
                          "write fewer of them");
    }
    Object object;
    bool allows = true;
    if (!schema.get(allows)) {
      if (allows) add_any(leaves);
      return {};
    }
    if (schema.get(object) || grammar::allows_nothing(schema)) return {};
    std::string_view uri;
    Element target;
    if (!object["$ref"].get(uri)) {
      if (uri == "#") return add_leaves(leaves.root, depth + 1, leaves);
      if (uri.starts_with("#/") && !leaves.root.at_pointer(uri.substr(1)).get(target)) {
        return add_leaves(target, depth + 1, leaves);
      }
    }
    for (const char* const keyword : {"anyOf", "oneOf", "allOf"}) {
      simdjson::dom::array choices;
      if (object[keyword].get(choices)) continue;
      if (std::string_view(keyword) == "allOf" && choices.size() != 1) break;
      for (const Element choice : choices) {
        QUIRE_RETURN_IF_ERROR(add_leaves(choice, depth + 1, leaves));
      }
      return {};
    }
    Element value;
    if (!object["const"].get(value)) return add_given(value, leaves);
    simdjson::dom::array values;
    if (!object["enum"].get(values)) {
      for (const Element each : values) QUIRE_RETURN_IF_ERROR(add_given(each, leaves));
      return {};
    }
    return add_types(object, schema, leaves);
  }

  // A value that the schema gives.
  Status add_given(const Element& value, Leaves& leaves) {
    std::string_view text;
    if (value.get(text)) {
      leaves.has_json = leaves.has_json || !value.is_null();
      leaves.out.push_back(
          {.is_text = false, .ebnf = grammar::ebnf_string(simdjson::minify(value))});
      return {};
    }
    const bool is_barred = std::ranges::any_of(
        leaves.notation.barred,
        [&](const std::string& barred) { return text.find(barred) != std::string_view::npos; });
    if (is_barred || (leaves.notation.trim == Trim::kSpace && trimmed(text) != text)) {
      return cannot_write(leaves.tool, fmt::format("the value '{}'", clipped(text)), "change it");
    }
    leaves.out.push_back({.is_text = true, .ebnf = grammar::ebnf_string(text)});
    return {};
  }

  void add_any(Leaves& leaves) {
    leaves.out.push_back({.is_text = true, .ebnf = text_without(leaves.notation.barred)});
    leaves.has_text = true;
  }

  Status add_types(const Object& object, const Element& schema, Leaves& leaves) {
    std::vector<std::string_view> types;
    Element type;
    if (!object["type"].get(type)) grammar::read_strings(type, types);
    bool is_nullable = false;
    if (!object["nullable"].get(is_nullable) && is_nullable) types.emplace_back("null");
    if (types.empty()) {
      const bool is_container = object["properties"].error() == simdjson::SUCCESS ||
                                object["items"].error() == simdjson::SUCCESS;
      if (is_container) add_json(schema, leaves);
      if (!is_container) add_any(leaves);
      return {};
    }
    for (const std::string_view name : types) {
      if (name == "string") {
        QUIRE_RETURN_IF_ERROR(add_string(object, leaves));
      } else if (name == "null") {
        leaves.out.push_back({.is_text = false, .ebnf = "\"null\""});
      } else if (types.size() == 1) {
        add_json(schema, leaves);
      } else {
        add_json_of_type(object, name, leaves);
      }
    }
    return {};
  }

  void add_json_text(std::string text, Leaves& leaves) {
    leaves.has_json = true;
    leaves.out.push_back({.is_text = false,
                          .ebnf = value_rule({.text = std::move(text),
                                              .tools = {{.path = "#", .tool = leaves.tool.name}},
                                              .barred = leaves.notation.barred})});
  }
  void add_json(const Element& schema, Leaves& leaves) {
    add_json_text(part_of_schema(schema, leaves.root), leaves);
  }

  // The schema with one of its types.
  void add_json_of_type(const Object& object, std::string_view type, Leaves& leaves) {
    std::string text = fmt::format("{{\"type\":\"{}\"", type);
    for (const auto& [key, member] : object) {
      if (key == "type" || key == "nullable") continue;
      const bool is_of_string =
          key == "minLength" || key == "maxLength" || key == "pattern" || key == "format";
      if (is_of_string) continue;
      std::string name;
      append_escaped(name, key);
      text += fmt::format(",\"{}\":{}", name, simdjson::minify(member));
    }
    const auto document = JsonDocument::parse(text + "}", "a part of the schema");
    if (document.ok()) add_json(document->root(), leaves);
  }

  // Text between tags has no escapes, so a bounded string cannot have the bytes that begin its end.
  Status add_string(const Object& object, Leaves& leaves) {
    const Notation& notation = leaves.notation;
    std::string_view pattern;
    std::string_view format;
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
    const bool has_pattern = !object["pattern"].get(pattern);
    const bool has_format =
        !object["format"].get(format) && grammar::find_format(format) != nullptr;
    const bool has_least = !object["minLength"].get(least);
    const bool has_length = !object["maxLength"].get(most) || has_least;
    leaves.has_text = true;
    leaves.has_pattern = leaves.has_pattern || has_pattern || has_format || has_length;
    const std::vector<ToolSchema> tools = {{.path = "#", .tool = leaves.tool.name}};
    if (has_pattern &&
        (has_length || (has_format && !grammar::is_generators_pattern(format, pattern)))) {
      return cannot_write(leaves.tool, "a string with \"pattern\" beside other restrictions",
                          "write the length into the pattern");
    }
    std::string ebnf;
    if (has_format && !has_pattern) {
      std::string schema = fmt::format("{{\"type\":\"string\",\"format\":\"{}\"", format);
      if (least > 0) schema += fmt::format(",\"minLength\":{}", least);
      if (most != UINT64_MAX) schema += fmt::format(",\"maxLength\":{}", most);
      ebnf = value_rule({.kind = GrammarValue::Kind::kText,
                         .text = schema + "}",
                         .tools = tools,
                         .barred = notation.barred});
    } else if (has_pattern) {
      ebnf = value_rule({.kind = GrammarValue::Kind::kRegex,
                         .text = std::string(grammar::plain_form(pattern)),
                         .tools = tools,
                         .barred = notation.barred});
    } else if (has_length) {
      const std::string more = most == UINT64_MAX ? "" : std::to_string(most);
      const std::string space = notation.trim == Trim::kSpace ? "\\u0020\\t\\n\\r" : "";
      ebnf = most == 0 ? "\"\""
                       : fmt::format("[^{}{}]{{{},{}}}", escaped_first_bytes(notation), space,
                                     least, more);
    } else {
      ebnf = text_without(notation.barred);
    }
    leaves.out.push_back({.is_text = true, .ebnf = std::move(ebnf)});
    return {};
  }

  const CallGrammarInput& input_;
  GrammarSpec spec_;
  std::string rules_;
  int num_rules_ = 0;
  std::string glue_;
  bool has_form_ = false;                       // calls open by a form without a pattern
  std::set<std::string, std::less<>> written_;  // the names of tools that a field can write
  std::map<std::string, std::string> texts_;    // rules by what their texts do not have
  std::map<std::string, std::string> values_;   // rules by their schema
};

}  // namespace

Result<GrammarSpec> call_grammar(const CallGrammarInput& input) {
  return CallGrammar(input).make();
}

}  // namespace quire::server
