#include "server/call_grammar/text_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/ascii.h"
#include "base/json.h"
#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "server/openai/tool_schemas.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr int kMaxDepth = 16;
constexpr size_t kMaxValues = 256;  // of one property

// The first bytes of numbers, quoted strings, containers, true, false and None, and white space, in
// the notation of a character class.
constexpr std::string_view kOtherBeginnings =
    R"(\u002d0-9tTfFnN\u005b\u007b\u0022\u0020\u0009\u000a\u000d)";

// Collects the forms of a value.
class TextValues {
 public:
  TextValues(GrammarRules& rules, const TextNotation& notation, const Tool& tool,
             const Element& root)
      : rules_(rules), notation_(notation), tool_(tool), root_(root) {}

  Result<std::vector<TextValue>> collect(const Property& property) {
    if (property.schema) {
      QUIRE_RETURN_IF_ERROR(add_values_of(*property.schema, 0));
    } else {
      out_.push_back({.is_text = true, .ebnf = rules_.text_without(notation_.barred)});
    }
    // The parser would read a text that begins like another value as that value.
    if (has_text_ && has_json_ && !notation_.is_typed) {
      if (has_pattern_) {
        return cannot_write(
            tool_,
            fmt::format("a restricted string beside other types in '{}'", clipped(property.name)),
            "let the property have one type");
      }
      for (TextValue& value : out_) {
        if (!value.is_text) continue;
        value.ebnf = fmt::format("(\"\" | [^{}{}] {})", kOtherBeginnings, escaped_first_bytes(),
                                 rules_.text_without(notation_.barred));
      }
    }
    if (out_.empty()) {
      return cannot_write(
          tool_, fmt::format("the property '{}', which allows no value,", clipped(property.name)),
          "allow one");
    }
    return std::move(out_);
  }

 private:
  std::string escaped_first_bytes() const {
    std::string out;
    for (const std::string& text : notation_.barred) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text.front()));
    }
    return out;
  }

  Status add_values_of(const Element& schema, int depth) {
    if (depth > kMaxDepth || ++num_visits_ > kMaxValues) {
      return cannot_write(tool_, "a property whose schema has too many alternatives",
                          "write fewer of them");
    }
    Object object;
    bool allows = true;
    if (!schema.get(allows)) {
      if (allows) add_any();
      return {};
    }
    if (schema.get(object) || grammar::allows_nothing(schema)) return {};
    std::string_view uri;
    Element target;
    if (!object["$ref"].get(uri)) {
      if (uri == "#") return add_values_of(root_, depth + 1);
      if (uri.starts_with("#/") && !root_.at_pointer(uri.substr(1)).get(target)) {
        return add_values_of(target, depth + 1);
      }
    }
    for (const char* const keyword : {"anyOf", "oneOf", "allOf"}) {
      simdjson::dom::array choices;
      if (object[keyword].get(choices)) continue;
      if (std::string_view(keyword) == "allOf" && choices.size() != 1) break;
      for (const Element choice : choices) {
        QUIRE_RETURN_IF_ERROR(add_values_of(choice, depth + 1));
      }
      return {};
    }
    Element value;
    if (!object["const"].get(value)) return add_given(value);
    simdjson::dom::array values;
    if (!object["enum"].get(values)) {
      for (const Element each : values) QUIRE_RETURN_IF_ERROR(add_given(each));
      return {};
    }
    return add_types(object, schema);
  }

  // Adds a value of "const" or "enum".
  Status add_given(const Element& value) {
    std::string_view text;
    if (value.get(text)) {
      has_json_ = has_json_ || !value.is_null();
      out_.push_back({.is_text = false, .ebnf = grammar::ebnf_string(simdjson::minify(value))});
      return {};
    }
    const bool is_barred = std::ranges::any_of(notation_.barred, [&](const std::string& barred) {
      return text.find(barred) != std::string_view::npos;
    });
    if (is_barred || (notation_.trim == Trim::kSpace && trimmed(text) != text)) {
      return cannot_write(tool_, fmt::format("the value '{}'", clipped(text)), "change it");
    }
    out_.push_back({.is_text = true, .ebnf = grammar::ebnf_string(text)});
    return {};
  }

  void add_any() {
    out_.push_back({.is_text = true, .ebnf = rules_.text_without(notation_.barred)});
    has_text_ = true;
  }

  Status add_types(const Object& object, const Element& schema) {
    std::vector<std::string_view> types;
    Element type;
    if (!object["type"].get(type)) grammar::read_strings(type, types);
    bool is_nullable = false;
    if (!object["nullable"].get(is_nullable) && is_nullable) types.emplace_back("null");
    if (types.empty()) {
      const bool is_container = object["properties"].error() == simdjson::SUCCESS ||
                                object["items"].error() == simdjson::SUCCESS;
      if (is_container) add_json(schema);
      if (!is_container) add_any();
      return {};
    }
    for (const std::string_view name : types) {
      if (name == "string") {
        QUIRE_RETURN_IF_ERROR(add_string(object));
      } else if (name == "null") {
        out_.push_back({.is_text = false, .ebnf = "\"null\""});
      } else if (types.size() == 1) {
        add_json(schema);
      } else {
        add_json_of_type(object, name);
      }
    }
    return {};
  }

  void add_json_text(std::string text) {
    has_json_ = true;
    out_.push_back({.is_text = false,
                    .ebnf = rules_.value_rule({.text = std::move(text),
                                               .tools = {{.path = "#", .tool = tool_.name}},
                                               .barred = notation_.barred})});
  }
  void add_json(const Element& schema) { add_json_text(part_of_schema(schema, root_)); }

  // Adds the schema with only one of its types.
  void add_json_of_type(const Object& object, std::string_view type) {
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
    if (document.ok()) add_json(document->root());
  }

  // Text between tags has no escapes, so a string of bounded length cannot contain the first bytes
  // of the barred texts.
  Status add_string(const Object& object) {
    std::string_view pattern;
    std::string_view format;
    uint64_t least = 0;
    uint64_t most = UINT64_MAX;
    const bool has_pattern = !object["pattern"].get(pattern);
    const bool has_format =
        !object["format"].get(format) && grammar::find_format(format) != nullptr;
    const bool has_least = !object["minLength"].get(least);
    const bool has_length = !object["maxLength"].get(most) || has_least;
    has_text_ = true;
    has_pattern_ = has_pattern_ || has_pattern || has_format || has_length;
    const std::vector<ToolSchema> tools = {{.path = "#", .tool = tool_.name}};
    if (has_pattern &&
        (has_length || (has_format && !grammar::is_generators_pattern(format, pattern)))) {
      return cannot_write(tool_, "a string with \"pattern\" beside other restrictions",
                          "write the length into the pattern");
    }
    std::string ebnf;
    if (has_format && !has_pattern) {
      std::string schema = fmt::format("{{\"type\":\"string\",\"format\":\"{}\"", format);
      if (least > 0) schema += fmt::format(",\"minLength\":{}", least);
      if (most != UINT64_MAX) schema += fmt::format(",\"maxLength\":{}", most);
      ebnf = rules_.value_rule({.kind = GrammarValue::Kind::kText,
                                .text = schema + "}",
                                .tools = tools,
                                .barred = notation_.barred});
    } else if (has_pattern) {
      ebnf = rules_.value_rule({.kind = GrammarValue::Kind::kRegex,
                                .text = std::string(grammar::plain_form(pattern)),
                                .tools = tools,
                                .barred = notation_.barred});
    } else if (has_length) {
      const std::string more = most == UINT64_MAX ? "" : std::to_string(most);
      const std::string space = notation_.trim == Trim::kSpace ? "\\u0020\\t\\n\\r" : "";
      ebnf = most == 0 ? "\"\""
                       : fmt::format("[^{}{}]{{{},{}}}", escaped_first_bytes(), space, least, more);
    } else {
      ebnf = rules_.text_without(notation_.barred);
    }
    out_.push_back({.is_text = true, .ebnf = std::move(ebnf)});
    return {};
  }

  GrammarRules& rules_;
  const TextNotation& notation_;
  const Tool& tool_;
  const Element& root_;
  std::vector<TextValue> out_;
  bool has_text_ = false;  // a form is a string that is not one fixed value
  bool has_pattern_ = false;
  bool has_json_ = false;  // a form is JSON other than null
  size_t num_visits_ = 0;
};

}  // namespace

Result<std::vector<TextValue>> text_values(GrammarRules& rules, const TextNotation& notation,
                                           const Tool& tool, const Property& property,
                                           const Element& root) {
  return TextValues(rules, notation, tool, root).collect(property);
}

}  // namespace quire::server
