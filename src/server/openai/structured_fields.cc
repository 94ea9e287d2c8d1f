#include <fmt/format.h>

#include "server/openai/answer_fields.h"

namespace quire::server {
namespace {

using Kind = GrammarSpec::Kind;

constexpr std::string_view kKinds = "json, regex, choice, grammar or json_object";

FieldError set_kind(const Path& path, Kind kind, std::optional<Restriction>& out) {
  if (out) return second_restriction(path);
  out = {.grammar = {.kind = kind}, .field = path.text()};
  return {};
}

FieldError check_size(const Path& path, const std::string& text, size_t max_bytes) {
  if (text.empty()) return field_error(path, "got an empty text, expected some");
  if (text.size() <= max_bytes) return {};
  return field_error(path,
                     fmt::format("got {} bytes, expected at most {}", text.size(), max_bytes));
}

// Reads a schema that is given as an object or as its text.
FieldError read_schema(const Path& path, Element value, const RequestLimits& limits,
                       std::string& out) {
  if (value.is_object()) {
    out = simdjson::to_string(value);
    return check_size(path, out, limits.grammar.max_text_bytes);
  }
  if (!value.is_string()) return unexpected(path, value, "a JSON schema: an object or its text");
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out));
  QUIRE_RETURN_IF_FIELD_ERROR(check_size(path, out, limits.grammar.max_text_bytes));
  const auto document = JsonDocument::parse(out, "schema", {.max_depth = limits.max_json_depth});
  if (document.ok() && document->root().is_object()) return {};
  return unexpected(path, value, "a JSON schema: valid JSON, an object");
}

FieldError read_choices(const Path& path, Element value, const RequestLimits& limits,
                        std::vector<std::string>& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(read_texts(path, value, limits.grammar.max_choices, out));
  if (out.empty()) return unexpected(path, value, "at least one choice");
  size_t num_bytes = 0;
  for (const std::string& choice : out) num_bytes += choice.size();
  if (num_bytes <= limits.grammar.max_text_bytes) return {};
  return field_error(path, fmt::format("got {} bytes of choices, expected at most {}", num_bytes,
                                       limits.grammar.max_text_bytes));
}

FieldError read_pattern(Kind kind, const Path& path, Element value, size_t max_bytes,
                        std::optional<Restriction>& out) {
  QUIRE_RETURN_IF_FIELD_ERROR(set_kind(path, kind, out));
  QUIRE_RETURN_IF_FIELD_ERROR(read_text(path, value, out->grammar.text));
  return check_size(path, out->grammar.text, max_bytes);
}

// Checks vLLM's options of structured_outputs. An option that would change the allowed text is
// refused, not ignored.
FieldError read_option(std::string_view name, const Path& path, Element value) {
  if (name == "disable_fallback") return {};  // there is no fallback backend
  if (name == "disable_any_whitespace" || name == "disable_additional_properties") {
    return refuse_unless_false(path, value);
  }
  if (name == "whitespace_pattern") return refuse_whitespace_pattern(path, value);
  if (name == "structural_tag") return unexpected(path, value, kKinds);
  return field_error(path.parent != nullptr ? *path.parent : path,
                     fmt::format("got an unknown kind '{}', expected {}", clipped(name), kKinds));
}

}  // namespace

FieldError refuse_whitespace_pattern(const Path& path, Element value) {
  return unexpected(path, value, "none: the grammar settles where white space may stand");
}

FieldError second_restriction(const Path& path) {
  return field_error(path,
                     "a second restriction of the answer, expected one of response_format, "
                     "structured_outputs, guided_… and a tool_choice that forces a call");
}

FieldError read_restriction(std::string_view kind, const Path& path, Element value,
                            const RequestLimits& limits, std::optional<Restriction>& out) {
  if (kind == "regex") {
    return read_pattern(Kind::kRegex, path, value, limits.grammar.max_regex_bytes, out);
  }
  if (kind == "grammar") {
    return read_pattern(Kind::kGrammar, path, value, limits.grammar.max_text_bytes, out);
  }
  if (kind == "json") {
    QUIRE_RETURN_IF_FIELD_ERROR(set_kind(path, Kind::kJsonSchema, out));
    return read_schema(path, value, limits, out->grammar.text);
  }
  if (kind == "choice") {
    QUIRE_RETURN_IF_FIELD_ERROR(set_kind(path, Kind::kChoice, out));
    return read_choices(path, value, limits, out->grammar.choices);
  }
  bool is_wanted = false;  // json_object
  QUIRE_RETURN_IF_FIELD_ERROR(read_bool(path, value, is_wanted));
  return is_wanted ? set_kind(path, Kind::kJsonObject, out) : FieldError();
}

FieldError read_structured_outputs(const Path& path, Element value, const RequestLimits& limits,
                                   std::optional<Restriction>& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  for (const auto& [name, restriction] : fields) {
    if (restriction.is_null()) continue;
    const Path at(path, name);
    if (name == "json" || name == "regex" || name == "choice" || name == "grammar" ||
        name == "json_object") {
      QUIRE_RETURN_IF_FIELD_ERROR(read_restriction(name, at, restriction, limits, out));
    } else {
      QUIRE_RETURN_IF_FIELD_ERROR(read_option(name, at, restriction));
    }
  }
  return {};
}

FieldError read_response_format(const Path& path, Element value, const RequestLimits& limits,
                                std::optional<Restriction>& out) {
  simdjson::dom::object fields;
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(path, value, fields));
  constexpr std::string_view kTypes = "'text', 'json_object' or 'json_schema'";
  const Path type_path(path, "type");
  Element type_value;
  if (fields["type"].get(type_value)) return missing(type_path, kTypes);
  std::string_view type;
  if (type_value.get_string().get(type)) return unexpected(type_path, type_value, kTypes);
  if (type == "text") return {};
  if (type == "json_object") return set_kind(path, Kind::kJsonObject, out);
  if (type != "json_schema") return unexpected(type_path, type_value, kTypes);
  const Path format_path(path, "json_schema");
  Element format;
  simdjson::dom::object format_fields;
  if (fields["json_schema"].get(format)) return missing(format_path, "an object");
  QUIRE_RETURN_IF_FIELD_ERROR(read_object(format_path, format, format_fields));
  Element schema;
  const Path schema_path(format_path, "schema");
  if (format_fields["schema"].get(schema)) return missing(schema_path, "a JSON schema");
  return read_restriction("json", schema_path, schema, limits, out);
}

}  // namespace quire::server
