#include "server/tools/response_template.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "server/tools/template_reader.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr size_t kMaxFields = 32;

Result<Detection> read_detection(Object root, std::string_view key) {
  Detection detection;
  Element value;
  if (root[key].get(value)) return detection;
  Object object;
  if (value.get(object)) return bad_template(fmt::format("'{}' must be an object", key));
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

void ResponseTemplate::add_literals(Literals& out) const {
  const auto add_form = [&](const Form& form) {
    for (const FormPart& part : form.parts) {
      if (part.kind == FormPart::Kind::kLiteral) out.texts.push_back(part.text);
      out.has_pattern |= part.kind == FormPart::Kind::kPattern;
    }
  };
  for (const TemplateField& field : fields) {
    for (const auto* const forms :
         {&field.open, &field.start, &field.next, &field.end, &field.close, &field.close_before}) {
      for (const Form& form : *forms) add_form(form);
    }
    for (const ArgumentTag& tag : field.tags) {
      add_form(tag.open);
      out.texts.push_back(tag.close);
    }
    for (const auto& [open, close] : field.notation.string_delims) {
      out.texts.push_back(open);
      out.texts.push_back(close);
    }
  }
  for (const Form& form : drop) add_form(form);
}

Result<ResponseTemplate> parse_response_template(std::string_view json, std::string_view source) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, source, {.max_bytes = kMaxBytes}));
  Object root;
  if (document.root().get(root)) return bad_template("expected an object");
  QUIRE_RETURN_IF_ERROR(
      check_keys(root, "the template",
                 {"version", "defaults", "fields", "start_anchor", "start_anchor_pattern", "about",
                  "names", "reasoning_names", "detect", "detect_reasoning", "short_ids", "drop"}));
  int64_t version = 1;
  if (!root["version"].get(version) && version != 1) {
    return bad_template(fmt::format("got version {}, expected 1", version));
  }
  ResponseTemplate out;
  out.json = json;
  out.about = text_of(root, "about");
  QUIRE_ASSIGN_OR_RETURN(out.names, strings(root, "names"));
  QUIRE_ASSIGN_OR_RETURN(out.reasoning_names, strings(root, "reasoning_names"));
  QUIRE_ASSIGN_OR_RETURN(out.detect, read_detection(root, "detect"));
  QUIRE_ASSIGN_OR_RETURN(out.detect_reasoning, read_detection(root, "detect_reasoning"));
  out.short_ids = flag(root, "short_ids");
  QUIRE_RETURN_IF_ERROR(add_forms(root, "drop", FormKind::kForm, Space::kKeep, out.drop));
  Object fields;
  if (root["fields"].get(fields) || fields.size() == 0 || fields.size() > kMaxFields) {
    return bad_template(fmt::format("'fields' must be an object of 1 to {} fields", kMaxFields));
  }
  for (const auto& [name, value] : fields) {
    QUIRE_ASSIGN_OR_RETURN(TemplateField field, read_field(name, value));
    out.fields.push_back(std::move(field));
  }
  return out;
}

}  // namespace quire::server
