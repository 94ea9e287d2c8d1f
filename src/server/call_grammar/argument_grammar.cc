#include "server/call_grammar/argument_grammar.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "server/call_grammar/text_values.h"
#include "server/openai/tool_schemas.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

using Content = TemplateField::Content;
using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr int kMaxReferences = 16;

// The schema of any value but a string.
constexpr std::string_view kNoString =
    R"({"anyOf":[{"type":["number","boolean","null"]},{"type":"array","items":true},)"
    R"({"type":"object","additionalProperties":true}]})";

struct Properties {
  std::vector<Property> list = {};
  bool is_open = false;  // properties that are not listed are allowed
};

// Returns the properties of the object that the schema describes.
Result<Properties> properties_of(const Tool& tool, Element schema) {
  const Element root = schema;
  Object object;
  for (int depth = 0;; ++depth) {
    if (depth > kMaxReferences || schema.get(object)) {
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
    for (const auto& [name, member] : members) out.list.push_back({.name = name, .schema = member});
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

void add_barred(std::string_view text, TextNotation& notation) {
  if (!text.empty()) notation.barred.emplace_back(text);
}

class ArgumentGrammar {
 public:
  ArgumentGrammar(GrammarRules& rules, const TemplateField& field, const Tool& tool,
                  const Element& root, Properties properties)
      : rules_(rules),
        field_(field),
        tool_(tool),
        root_(root),
        properties_(std::move(properties)) {}

  Result<std::string> make() {
    if (field_.content == Content::kArguments) return python_arguments();
    if (field_.content == Content::kBody) return line_arguments();
    return tagged_arguments();
  }

 private:
  std::string schema_of(const Property& property) const {
    return property.schema ? part_of_schema(*property.schema, root_) : "true";
  }

  // Returns the EBNF of f(a=1, b="x"), from the first argument to the closing parenthesis.
  Result<std::string> python_arguments() {
    const auto literal_rule = [&](std::string schema) {
      return rules_.value_rule({.kind = GrammarValue::Kind::kPython,
                                .text = std::move(schema),
                                .tools = {{.path = "#", .tool = tool_.name}}});
    };
    if (properties_.is_open) {
      const std::string pair = "key \"=\" " + literal_rule("true");
      return fmt::format("({} (\",\" ws {})*)? \")\"", pair, pair);
    }
    // Both have the arguments from a property on: `first` if no argument precedes them, `rest`
    // after another argument.
    std::string rest;
    std::string first;
    for (auto property = properties_.list.rbegin(); property != properties_.list.rend();
         ++property) {
      const std::string_view name = property->name;
      const auto is_word = [](char c) {
        return is_alphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
      };
      if (name.empty() || !std::ranges::all_of(name, is_word) || is_digit(name.front())) {
        if (!property->is_required) continue;
        return cannot_write(tool_, fmt::format("the property '{}'", clipped(name)), "rename it");
      }
      const std::string pair = fmt::format("{} {}", grammar::ebnf_string(std::string(name) + "="),
                                           literal_rule(schema_of(*property)));
      const std::string pair_and_rest = rest.empty() ? pair : pair + " " + rest;
      std::string new_first = pair_and_rest;
      std::string new_rest = "\",\" ws " + pair_and_rest;
      if (!property->is_required) {
        new_first += " | " + (first.empty() ? "\"\"" : first);
        new_rest += " | " + (rest.empty() ? "\"\"" : rest);
      }
      first = rules_.add_rule("first", new_first);
      rest = rules_.add_rule("rest", new_rest);
    }
    return first.empty() ? "\")\"" : first + " \")\"";
  }

  // Returns the EBNF of the properties between their tags, in the order of the schema.
  Result<std::string> tagged_arguments() {
    TextNotation notation = {.trim = field_.trim};
    const ArgumentTag* text_tag = nullptr;
    const ArgumentTag* json_tag = nullptr;
    for (const ArgumentTag& tag : field_.tags) {
      const bool is_schema = tag.type == ArgumentTag::Type::kSchema;
      if (text_tag == nullptr && tag.type != ArgumentTag::Type::kJson) text_tag = &tag;
      if (json_tag == nullptr && tag.type != ArgumentTag::Type::kString) json_tag = &tag;
      if (!is_schema) notation.is_typed = true;
      notation.barred.push_back(tag.close);
      add_barred(first_literal(tag.open), notation);
    }
    if (!field_.close.empty()) add_barred(first_literal(field_.close.front()), notation);
    std::ranges::sort(notation.barred);
    notation.barred.erase(std::unique(notation.barred.begin(), notation.barred.end()),
                          notation.barred.end());
    if (text_tag == nullptr || json_tag == nullptr) return needs_pattern();
    const auto wrapped = [&](const ArgumentTag& tag, std::string_view key,
                             const std::string& value) {
      const std::optional<Sequence> open = rules_.sequence(tag.open, key);
      const char* const newline = field_.trim == Trim::kNewline ? " \"\\n\" " : " ";
      return open ? fmt::format("{}{}{}{}{}", open->ebnf, newline, value, newline,
                                rules_.literal(tag.close).ebnf)
                  : std::string();
    };
    if (properties_.is_open) {
      std::string any = wrapped(*text_tag, "key", rules_.text_without(notation.barred));
      if (text_tag != json_tag) {
        any += " | " + wrapped(*json_tag, "key",
                               rules_.value_rule({.text = std::string(kNoString),
                                                  .tools = {{.path = "#", .tool = tool_.name}},
                                                  .barred = notation.barred}));
      }
      return fmt::format("({})*", any);
    }
    std::string out;
    for (const Property& property : properties_.list) {
      if (!can_hold(text_tag->open, property.name) || !can_hold(json_tag->open, property.name)) {
        if (!property.is_required) continue;
        return cannot_write(tool_, fmt::format("the property '{}'", clipped(property.name)),
                            "rename it");
      }
      std::vector<std::string> texts;
      std::vector<std::string> others;
      QUIRE_ASSIGN_OR_RETURN(const std::vector<TextValue> values,
                             text_values(rules_, notation, tool_, property, root_));
      for (const TextValue& value : values) {
        (value.is_text || text_tag == json_tag ? texts : others).push_back(value.ebnf);
      }
      const std::string key = grammar::ebnf_string(property.name);
      std::vector<std::string> forms;
      if (!texts.empty()) forms.push_back(wrapped(*text_tag, key, alternatives(texts)));
      if (!others.empty()) forms.push_back(wrapped(*json_tag, key, alternatives(others)));
      const std::string rule =
          rules_.add_rule("argument", fmt::format("{}", fmt::join(forms, " | ")));
      append_part(property.is_required ? rule : rule + "?", out);
    }
    return out.empty() ? std::string("\"\"") : out;
  }

  // Returns the EBNF of lines "key: value".
  Result<std::string> line_arguments() {
    const BodyFormat& body = field_.body;
    if (!body.value_parser.empty()) {
      return cannot_write(tool_,
                          fmt::format("the values that the parser '{}' reads", body.value_parser),
                          "leave out the template's value_parser");
    }
    TextNotation notation = {.barred = {body.line_sep}, .trim = Trim::kSpace};
    for (const Form& form : field_.close) add_barred(first_literal(form), notation);
    if (properties_.is_open) {
      return fmt::format("(key {} {} {})*", grammar::ebnf_string(body.kv_sep),
                         rules_.text_without(notation.barred), grammar::ebnf_string(body.line_sep));
    }
    std::string out;
    for (const Property& property : properties_.list) {
      const bool has_sep = property.name.find(body.kv_sep) != std::string_view::npos ||
                           property.name.find(body.line_sep) != std::string_view::npos;
      if (has_sep || trimmed(property.name) != property.name || property.name.empty()) {
        if (!property.is_required) continue;
        return cannot_write(tool_, fmt::format("the property '{}'", clipped(property.name)),
                            "rename it");
      }
      QUIRE_ASSIGN_OR_RETURN(const std::vector<TextValue> values,
                             text_values(rules_, notation, tool_, property, root_));
      std::vector<std::string> texts;
      for (const TextValue& value : values) texts.push_back(value.ebnf);
      const std::string line =
          fmt::format("{} {} {}", grammar::ebnf_string(std::string(property.name) + body.kv_sep),
                      alternatives(texts), grammar::ebnf_string(body.line_sep));
      const std::string rule = rules_.add_rule("line", line);
      append_part(property.is_required ? rule : rule + "?", out);
    }
    return out.empty() ? std::string("\"\"") : out;
  }

  GrammarRules& rules_;
  const TemplateField& field_;
  const Tool& tool_;
  const Element root_;
  const Properties properties_;
};

}  // namespace

Result<std::string> arguments_ebnf(GrammarRules& rules, const TemplateField& field,
                                   const Tool& tool) {
  if (field.content == Content::kArguments && !field.notation.python) {
    return rules.value_rule(
        {.text = arguments_schema(tool), .tools = {{.path = "#", .tool = tool.name}}});
  }
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(tool.parameters, "parameters"));
  const Element root = document.root();
  QUIRE_ASSIGN_OR_RETURN(Properties properties, properties_of(tool, root));
  return ArgumentGrammar(rules, field, tool, root, std::move(properties)).make();
}

}  // namespace quire::server
