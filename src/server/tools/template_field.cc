#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "server/tools/template_reader.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;
using Content = TemplateField::Content;
using Target = TemplateField::Target;

bool has_kind(const Form& form, FormPart::Kind kind) {
  return std::ranges::any_of(form.parts, [&](const FormPart& part) { return part.kind == kind; });
}

Target target_of(std::string_view name) {
  if (name == "content") return Target::kContent;
  if (name == "tool_calls") return Target::kCalls;
  const bool is_reasoning =
      name == "reasoning" || name == "reasoning_content" || name == "thinking";
  return is_reasoning ? Target::kReasoning : Target::kIgnored;
}

Result<ArgumentTag> read_tag(const Element& value) {
  Object object;
  if (value.get(object)) return bad_template("each of 'tags' must be an object");
  QUIRE_RETURN_IF_ERROR(check_keys(object, "a tag", {"open", "close", "type"}));
  ArgumentTag tag;
  QUIRE_ASSIGN_OR_RETURN(tag.open, parse_form(text_of(object, "open")));
  tag.open = after_space(std::move(tag.open));
  tag.close = text_of(object, "close");
  if (!has_kind(tag.open, FormPart::Kind::kKey) || tag.close.empty()) {
    return bad_template("a tag needs 'open' with {key}, and 'close'");
  }
  const std::string_view type = text_of(object, "type", "schema");
  if (type != "schema" && type != "string" && type != "json") {
    return bad_template(
        fmt::format("a tag has the type '{}'; expected schema, string or json", clipped(type)));
  }
  tag.type = type == "string"
                 ? ArgumentTag::Type::kString
                 : (type == "json" ? ArgumentTag::Type::kJson : ArgumentTag::Type::kSchema);
  return tag;
}

// Reads the arguments of the content parsers that need the whole text.
Status read_body(Object args, BodyFormat& body) {
  const std::string_view pattern = text_of(args, "tag_pattern");
  if (!pattern.empty()) {
    QUIRE_ASSIGN_OR_RETURN(body.tag_pattern, TextPattern::compile(pattern));
    if (!body.tag_pattern->has_group("key") || !body.tag_pattern->has_group("value")) {
      return bad_template("'tag_pattern' needs the groups 'key' and 'value'");
    }
  }
  body.merges = flag(args, "merge_duplicates");
  body.line_sep = text_of(args, "line_sep", "\n");
  body.kv_sep = text_of(args, "kv_sep", ":");
  if (body.line_sep.empty() || body.kv_sep.empty()) {
    return bad_template("'line_sep' and 'kv_sep' must not be empty");
  }
  Object parser;
  if (args["value_parser"].get(parser)) return {};
  body.value_parser = text_of(parser, "name", "text");
  constexpr std::string_view kKnown[] = {"text", "int", "float", "bool", "json"};
  if (std::ranges::find(kKnown, body.value_parser) != std::end(kKnown)) return {};
  return bad_template(fmt::format("'value_parser' has the name '{}'; expected one of {}",
                                  clipped(body.value_parser), fmt::join(kKnown, ", ")));
}

Status read_content_args(Object field, TemplateField& out) {
  Element value;
  if (field["content_args"].get(value)) return {};
  Object args;
  if (value.get(args)) return bad_template("'content_args' must be an object");
  QUIRE_RETURN_IF_ERROR(
      check_keys(args, "'content_args'",
                 {"tags", "trim", "strip", "unquoted_keys", "string_delims", "allow_non_json",
                  "tag_pattern", "value_parser", "merge_duplicates", "line_sep", "kv_sep"}));
  out.notation.unquoted_keys = flag(args, "unquoted_keys");
  simdjson::dom::array list;
  if (!args["string_delims"].get(list)) {
    for (const Element pair : list) {
      std::string_view open;
      std::string_view close;
      if (pair.at(0).get(open) || pair.at(1).get(close) || open.empty() || close.empty()) {
        return bad_template("'string_delims' must be a list of pairs of texts");
      }
      out.notation.string_delims.emplace_back(open, close);
    }
  }
  if (!args["tags"].get(list)) {
    for (const Element item : list) {
      QUIRE_ASSIGN_OR_RETURN(ArgumentTag tag, read_tag(item));
      out.tags.push_back(std::move(tag));
    }
  }
  QUIRE_RETURN_IF_ERROR(read_body(args, out.body));
  const std::string_view trim = text_of(args, "trim", "none");
  if (trim != "none" && trim != "newline" && trim != "space") {
    return bad_template(
        fmt::format("'trim' is '{}'; expected none, newline or space", clipped(trim)));
  }
  out.trim = trim == "newline" ? Trim::kNewline : (trim == "space" ? Trim::kSpace : Trim::kNone);
  return {};
}

// Returns the x of "{content.x}" or, for each item of a list, of "{x}"; "" for any other text.
std::string_view placeholder(std::string_view text, bool each) {
  const std::string_view prefix = each ? "{" : "{content.";
  if (!text.starts_with(prefix) || !text.ends_with('}')) return {};
  if (each && text.starts_with("{content.")) return {};
  text.remove_prefix(prefix.size());
  text.remove_suffix(1);
  return text;
}

// Reads where the name and the arguments of a call come from.
Status read_transform(Object field, TemplateField& out) {
  const bool each = flag(field, "transform_each");
  Object transform;
  if (field["transform"].get(transform)) return bad_template("'tool_calls' needs a 'transform'");
  Object function;
  if (transform["function"].get(function)) {
    const bool is_whole = text_of(transform, "function") == "{content}";
    if (is_whole && out.content == Content::kCallObject) return {};
    return bad_template("the transform of 'tool_calls' needs function.name and function.arguments");
  }
  const std::string_view name = text_of(function, "name");
  const std::string_view arguments = text_of(function, "arguments");
  if (name == "{name}" && arguments == "{content}" && !each) {
    if (out.content == Content::kCallObject) out.content = Content::kArguments;
    return {};
  }
  if (out.notation.python && name == "{name}" && arguments == "{arguments}") return {};
  out.name_key = placeholder(name, each);
  out.arguments_key = placeholder(arguments, each);
  if (!out.name_key.empty() && !out.arguments_key.empty() && out.content == Content::kCallObject) {
    return {};
  }
  return bad_template(
      fmt::format("the transform of 'tool_calls' has the name '{}' and the arguments '{}'; "
                  "expected {{name}} and {{content}}, or keys of the content",
                  clipped(name), clipped(arguments)));
}

Form join(const Form& first, std::string_view middle, const Form& last) {
  Form form = first;
  const Result<Form> between = parse_form(middle);
  for (const Form* const part : {&*between, &last}) {
    form.parts.insert(form.parts.end(), part->parts.begin(), part->parts.end());
  }
  return form;
}

// Makes the field a list of calls: "[" opens the first call, "," the next, and "]" ends the list.
void expand_list(TemplateField& field, std::string_view item) {
  for (Form& form : field.open) form = join(form, fmt::format("{{ws}}[{{ws}}{}", item), {});
  field.next.push_back(join({}, fmt::format("{{ws}},{{ws}}{}", item), {}));
  if (field.close.empty()) field.end.push_back(join({}, "{ws}]", {}));
  for (const Form& form : std::exchange(field.close, {})) {
    field.end.push_back(join({}, "{ws}]", form));
  }
}

Status read_calls(Object object, TemplateField& field) {
  const std::string_view content = text_of(object, "content", "text");
  if (content == "json") {
    field.content = Content::kCallObject;
  } else if (content == "xml-inline") {
    field.content = field.tags.empty() ? Content::kBody : Content::kTags;
    if (field.tags.empty() && field.body.tag_pattern == nullptr) {
      return bad_template("'tool_calls' with xml-inline needs a 'tag_pattern'");
    }
  } else if (content == "kv-lines") {
    field.content = Content::kBody;
  } else if (content == "python-call-list") {
    field.content = Content::kArguments;
    field.notation.python = true;
  } else {
    return bad_template(
        fmt::format("'tool_calls' has the content '{}'; expected json, xml-inline, "
                    "kv-lines or python-call-list",
                    clipped(content)));
  }
  QUIRE_RETURN_IF_ERROR(read_transform(object, field));
  const bool is_named = std::ranges::any_of(field.open, names_tool);
  Element forms;
  const bool has_forms = !object["open_forms"].get(forms) || !object["start_forms"].get(forms);
  if (field.notation.python && !is_named && !has_forms) {
    expand_list(field, "{name}(");
  } else if (flag(object, "transform_each") && !has_forms) {
    expand_list(field, "");
  } else if (!has_forms) {
    for (Form& form : field.open) form = join(form, "{ws}", {});
  }
  if (field.content == Content::kBody && field.close.empty()) {
    return bad_template("'tool_calls' with this content needs 'close' or 'close_pattern'");
  }
  const bool needs_name = field.content != Content::kCallObject;
  for (const std::vector<Form>* const list : {&field.open, &field.start, &field.next}) {
    for (const Form& form : *list) {
      if (names_tool(form) != needs_name) {
        return bad_template(needs_name
                                ? "each form that opens 'tool_calls' needs {name}, because the "
                                  "content has only the arguments"
                                : "a form that opens 'tool_calls' must not have {name}, because "
                                  "the content has it");
      }
    }
  }
  return {};
}

}  // namespace

Result<TemplateField> read_field(std::string_view name, const Element& value) {
  Object object;
  if (value.get(object))
    return bad_template(fmt::format("the field '{}' must be an object", clipped(name)));
  QUIRE_RETURN_IF_ERROR(
      check_keys(object, fmt::format("the field '{}'", clipped(name)),
                 {"open", "open_pattern", "close", "close_pattern", "content", "content_args",
                  "repeats", "join", "optional", "transform", "transform_each", "open_forms",
                  "start_forms", "next_forms", "end_forms", "close_forms", "close_before"}));
  TemplateField field;
  field.name = name;
  field.join = text_of(object, "join");
  Object args;
  bool strips = true;
  if (!object["content_args"].get(args) && !args["strip"].get(strips)) field.strips = strips;
  field.target = target_of(name.substr(0, name.find('.')));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "open", FormKind::kLiteral, Space::kKeep, field.open));
  QUIRE_RETURN_IF_ERROR(
      add_forms(object, "open_pattern", FormKind::kPattern, Space::kKeep, field.open));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "open_forms", FormKind::kForm, Space::kKeep, field.open));
  QUIRE_RETURN_IF_ERROR(
      add_forms(object, "start_forms", FormKind::kForm, Space::kBefore, field.start));
  QUIRE_RETURN_IF_ERROR(
      add_forms(object, "next_forms", FormKind::kForm, Space::kBefore, field.next));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "end_forms", FormKind::kForm, Space::kBefore, field.end));
  const Space space = field.target == Target::kCalls ? Space::kBefore : Space::kKeep;
  QUIRE_RETURN_IF_ERROR(add_forms(object, "close", FormKind::kLiteral, space, field.close));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "close_pattern", FormKind::kPattern, space, field.close));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "close_forms", FormKind::kForm, space, field.close));
  QUIRE_RETURN_IF_ERROR(
      add_forms(object, "close_before", FormKind::kForm, space, field.close_before));
  QUIRE_RETURN_IF_ERROR(read_content_args(object, field));
  if (field.target == Target::kCalls) QUIRE_RETURN_IF_ERROR(read_calls(object, field));
  for (const Form& form : field.open) {
    const bool is_valid =
        !form.parts.empty() && (form.parts.front().kind == FormPart::Kind::kLiteral ||
                                form.parts.front().kind == FormPart::Kind::kPattern);
    if (!is_valid) {
      return bad_template(
          fmt::format("the field '{}' must open with a literal or a pattern", clipped(name)));
    }
  }
  return field;
}

}  // namespace quire::server
