#include "server/tools/response_template.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;
using Content = TemplateField::Content;
using Target = TemplateField::Target;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxFields = 32;
constexpr size_t kMaxItems = 64;
constexpr size_t kMaxLiteralBytes = 256;

Status bad(std::string_view what) {
  return invalid_argument(fmt::format("[tools] response template: {}", what));
}

// Reads a string or a list of strings that are not empty.
Result<std::vector<std::string>> strings(Object object, std::string_view key) {
  std::vector<std::string> texts;
  Element value;
  if (object[key].get(value)) return texts;
  const auto add = [&](const Element& item) {
    std::string_view text;
    const bool is_valid = !item.get(text) && !text.empty() && text.size() <= kMaxLiteralBytes;
    if (is_valid) texts.emplace_back(text);
    return is_valid;
  };
  bool is_valid = true;
  simdjson::dom::array list;
  if (!value.get(list)) {
    for (const Element item : list) is_valid = is_valid && texts.size() < kMaxItems && add(item);
    is_valid = is_valid && !texts.empty();
  } else {
    is_valid = add(value);
  }
  if (is_valid) return texts;
  return bad(fmt::format("'{}' must be a text of 1 to {} bytes, or a list of 1 to {} such texts",
                         key, kMaxLiteralBytes, kMaxItems));
}

bool flag(Object object, std::string_view key) {
  bool value = false;
  return !object[key].get(value) && value;
}

std::string_view text_of(Object object, std::string_view key, std::string_view fallback = {}) {
  std::string_view value;
  return object[key].get(value) ? fallback : value;
}

Status check_keys(Object object, std::string_view what, std::initializer_list<const char*> known) {
  for (const auto& [key, value] : object) {
    const auto matches = [&](std::string_view name) { return name == key; };
    if (std::ranges::none_of(known, matches)) {
      return bad(fmt::format("{} has the unknown key '{}'; expected one of {}", what, clipped(key),
                             fmt::join(known, ", ")));
    }
  }
  return {};
}

enum class Space : uint8_t { kKeep, kBefore };

Status add_forms(Object object, std::string_view key, Space space, std::vector<Form>& forms) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, strings(object, key));
  for (const std::string& text : texts) {
    QUIRE_ASSIGN_OR_RETURN(Form form, parse_form(text));
    forms.push_back(space == Space::kBefore ? after_space(std::move(form)) : std::move(form));
  }
  return {};
}

Status add_literals(Object object, std::string_view key, Space space, std::vector<Form>& forms) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<std::string> texts, strings(object, key));
  for (const std::string& text : texts) {
    Form form = literal_form(text);
    forms.push_back(space == Space::kBefore ? after_space(std::move(form)) : std::move(form));
  }
  return {};
}

bool has_kind(const Form& form, FormPart::Kind kind) {
  return std::ranges::any_of(form.parts, [&](const FormPart& part) { return part.kind == kind; });
}

bool names_tool(const Form& form) {
  return has_kind(form, FormPart::Kind::kName);
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
  if (value.get(object)) return bad("each of 'tags' must be an object");
  QUIRE_RETURN_IF_ERROR(check_keys(object, "a tag", {"open", "close", "type"}));
  ArgumentTag tag;
  QUIRE_ASSIGN_OR_RETURN(tag.open, parse_form(text_of(object, "open")));
  tag.open = after_space(std::move(tag.open));
  tag.close = text_of(object, "close");
  if (!has_kind(tag.open, FormPart::Kind::kKey) || tag.close.empty()) {
    return bad("a tag needs 'open' with {key}, and 'close'");
  }
  const std::string_view type = text_of(object, "type", "schema");
  if (type != "schema" && type != "string" && type != "json") {
    return bad(
        fmt::format("a tag has the type '{}'; expected schema, string or json", clipped(type)));
  }
  tag.type = type == "string"
                 ? ArgumentTag::Type::kString
                 : (type == "json" ? ArgumentTag::Type::kJson : ArgumentTag::Type::kSchema);
  return tag;
}

Status read_content_args(Object field, TemplateField& out) {
  Element value;
  if (field["content_args"].get(value)) return {};
  Object args;
  if (value.get(args)) return bad("'content_args' must be an object");
  QUIRE_RETURN_IF_ERROR(check_keys(args, "'content_args'",
                                   {"tags", "trim", "strip", "unquoted_keys", "string_delims"}));
  out.notation.unquoted_keys = flag(args, "unquoted_keys");
  simdjson::dom::array list;
  if (!args["string_delims"].get(list)) {
    for (const Element pair : list) {
      std::string_view open;
      std::string_view close;
      if (pair.at(0).get(open) || pair.at(1).get(close) || open.empty() || close.empty()) {
        return bad("'string_delims' must be a list of pairs of texts");
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
  const std::string_view trim = text_of(args, "trim", "none");
  out.trim = trim == "newline" ? Trim::kNewline : (trim == "space" ? Trim::kSpace : Trim::kNone);
  return {};
}

// The placeholder "{content.x}" or, for each item of a list, "{x}"; "" if the text is neither.
std::string_view placeholder(std::string_view text, bool each) {
  const std::string_view prefix = each ? "{" : "{content.";
  if (!text.starts_with(prefix) || !text.ends_with('}')) return {};
  text.remove_prefix(prefix.size());
  text.remove_suffix(1);
  return text;
}

// Reads where the name and the arguments of a call come from.
Status read_transform(Object field, TemplateField& out) {
  const bool each = flag(field, "transform_each");
  Object transform;
  if (field["transform"].get(transform)) return bad("'tool_calls' needs a 'transform'");
  Object function;
  if (transform["function"].get(function)) {
    const bool is_whole = text_of(transform, "function") == "{content}";
    if (is_whole && out.content == Content::kCallObject) return {};
    return bad("the transform of 'tool_calls' needs function.name and function.arguments");
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
  return bad(
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

// A list of calls within one field: "[" opens the first, "," the next, "]" ends it.
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
    field.content = Content::kTags;
    if (field.tags.empty()) return bad("'tool_calls' with xml-inline needs 'tags'");
  } else if (content == "python-call-list") {
    field.content = Content::kArguments;
    field.notation.python = true;
  } else {
    return bad(
        fmt::format("'tool_calls' has the content '{}'; expected json, xml-inline or "
                    "python-call-list",
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
  const bool needs_name = field.content != Content::kCallObject;
  for (const std::vector<Form>* const list : {&field.open, &field.start, &field.next}) {
    for (const Form& form : *list) {
      if (names_tool(form) != needs_name) {
        return bad(needs_name
                       ? "each form that opens 'tool_calls' needs {name}, because the "
                         "content has only the arguments"
                       : "a form that opens 'tool_calls' has {name}, but so has the content");
      }
    }
  }
  return {};
}

Result<TemplateField> read_field(std::string_view name, const Element& value) {
  Object object;
  if (value.get(object)) return bad(fmt::format("the field '{}' must be an object", clipped(name)));
  QUIRE_RETURN_IF_ERROR(
      check_keys(object, fmt::format("the field '{}'", clipped(name)),
                 {"open", "close", "content", "content_args", "repeats", "join", "optional",
                  "transform", "transform_each", "open_forms", "start_forms", "next_forms",
                  "end_forms", "close_forms", "close_before"}));
  TemplateField field;
  field.name = name;
  field.target = target_of(name.substr(0, name.find('.')));
  QUIRE_RETURN_IF_ERROR(add_literals(object, "open", Space::kKeep, field.open));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "open_forms", Space::kKeep, field.open));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "start_forms", Space::kBefore, field.start));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "next_forms", Space::kBefore, field.next));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "end_forms", Space::kBefore, field.end));
  const Space space = field.target == Target::kCalls ? Space::kBefore : Space::kKeep;
  QUIRE_RETURN_IF_ERROR(add_literals(object, "close", space, field.close));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "close_forms", space, field.close));
  QUIRE_RETURN_IF_ERROR(add_forms(object, "close_before", space, field.close_before));
  QUIRE_RETURN_IF_ERROR(read_content_args(object, field));
  if (field.target == Target::kCalls) QUIRE_RETURN_IF_ERROR(read_calls(object, field));
  for (const Form& form : field.open) {
    if (form.parts.empty() || form.parts.front().kind != FormPart::Kind::kLiteral) {
      return bad(fmt::format("the field '{}' must open with a literal", clipped(name)));
    }
  }
  return field;
}

Result<Detection> read_detection(Object root, std::string_view key) {
  Detection detection;
  Element value;
  if (root[key].get(value)) return detection;
  Object object;
  if (value.get(object)) return bad(fmt::format("'{}' must be an object", key));
  QUIRE_RETURN_IF_ERROR(check_keys(object, key, {"all", "none", "priority"}));
  QUIRE_ASSIGN_OR_RETURN(detection.all, strings(object, "all"));
  QUIRE_ASSIGN_OR_RETURN(detection.none, strings(object, "none"));
  int64_t priority = 0;
  if (!object["priority"].get(priority)) detection.priority = static_cast<int>(priority);
  return detection;
}

}  // namespace

bool Detection::fits(std::string_view chat_template) const {
  const auto has = [&](const std::string& literal) {
    return chat_template.find(literal) != std::string_view::npos;
  };
  return !all.empty() && std::ranges::all_of(all, has) && std::ranges::none_of(none, has);
}

const TemplateField* ResponseTemplate::field(TemplateField::Target target) const {
  const auto found = std::ranges::find(fields, target, &TemplateField::target);
  return found == fields.end() ? nullptr : &*found;
}

Result<ResponseTemplate> parse_response_template(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, {.max_bytes = kMaxBytes}));
  Object root;
  if (document.root().get(root)) return bad("expected an object");
  QUIRE_RETURN_IF_ERROR(check_keys(
      root, "the template",
      {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern", "about", "names",
       "reasoning_names", "detect", "detect_reasoning", "special_tokens", "short_ids", "drop"}));
  int64_t version = 1;
  if (!root["version"].get(version) && version != 1) {
    return bad(fmt::format("got version {}, expected 1", version));
  }
  ResponseTemplate out;
  QUIRE_ASSIGN_OR_RETURN(out.names, strings(root, "names"));
  QUIRE_ASSIGN_OR_RETURN(out.reasoning_names, strings(root, "reasoning_names"));
  QUIRE_ASSIGN_OR_RETURN(out.detect, read_detection(root, "detect"));
  QUIRE_ASSIGN_OR_RETURN(out.detect_reasoning, read_detection(root, "detect_reasoning"));
  out.special_tokens = flag(root, "special_tokens");
  out.short_ids = flag(root, "short_ids");
  QUIRE_RETURN_IF_ERROR(add_forms(root, "drop", Space::kKeep, out.drop));
  Object fields;
  if (root["fields"].get(fields) || fields.size() == 0 || fields.size() > kMaxFields) {
    return bad(fmt::format("'fields' must be an object of 1 to {} fields", kMaxFields));
  }
  for (const auto& [name, value] : fields) {
    QUIRE_ASSIGN_OR_RETURN(TemplateField field, read_field(name, value));
    out.fields.push_back(std::move(field));
  }
  return out;
}

}  // namespace quire::server
