// Rewrites a JSON schema into the forms that XGrammar enforces. XGrammar reads one of $ref, const,
// enum, anyOf, oneOf, allOf and type, and ignores the keywords beside it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"
#include "grammar/work_budget.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// The root's member that holds the shared schemas of additional properties (see PlainSchema). A
// document cannot refer to it or contain it: check_schema refuses a $ref with '~', and unknown
// keywords are not written.
constexpr std::string_view kAdditionalSchemas = "~rest";

std::string json_string(std::string_view text) {
  JsonWriter writer;
  writer.value(text);
  return writer.text();
}

// The bytes that may still be written, for all texts of one schema together.
struct TextBound {
  size_t bytes_left;
  bool is_exceeded = false;
};

// Writes JSON value by value. Drops text beyond the bound, so that memory stays bounded.
class BoundedJson {
 public:
  explicit BoundedJson(TextBound& bound) : bound_(bound) {}

  void open(char bracket) {
    separate();
    append({&bracket, 1});
    needs_comma_ = false;
  }
  void close(char bracket) {
    append({&bracket, 1});
    needs_comma_ = true;
  }
  void key(std::string_view name) {
    value(json_string(name));
    append(":");
    needs_comma_ = false;
  }
  void value(std::string_view json) {
    separate();
    append(json);
    needs_comma_ = true;
  }
  void field(std::string_view name, std::string_view json) {
    key(name);
    value(json);
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (needs_comma_) append(",");
  }
  void append(std::string_view text) {
    charge_work();
    if (text.size() > bound_.bytes_left) bound_.is_exceeded = true;
    if (bound_.is_exceeded) return;
    bound_.bytes_left -= text.size();
    text_ += text;
  }

  TextBound& bound_;
  std::string text_;
  bool needs_comma_ = false;
};

bool is_false(element schema) {
  return schema.is_bool() && !schema.get_bool().value_unsafe();
}

void copy(const Members& members, const std::vector<std::string_view>& keywords, BoundedJson& out) {
  for (const std::string_view keyword : keywords) {
    if (members.contains(keyword)) out.field(keyword, simdjson::minify(members.at(keyword)));
  }
}

// The schema of additional properties (those that `properties` does not name), and its keyword.
struct AdditionalSchema {
  std::string_view keyword;
  element schema;
};
std::optional<AdditionalSchema> additional_schema_of(object schema) {
  AdditionalSchema additional;
  for (const std::string_view keyword : {"additionalProperties", "unevaluatedProperties"}) {
    additional.keyword = keyword;
    if (!schema.at_key(keyword).get(additional.schema)) return additional;
  }
  return std::nullopt;
}

// The required properties that are missing from `properties`.
Result<std::vector<std::string_view>> unnamed_properties(object schema) {
  std::vector<std::string_view> required;
  element list;
  if (!schema.at_key("required").get(list) && (!list.is_array() || !read_strings(list, required))) {
    return invalid_argument("[grammar] the JSON schema's \"required\" is not a list of names");
  }
  std::unordered_set<std::string_view> seen;
  object properties;
  if (!schema.at_key("properties").get_object().get(properties)) {
    for (const auto [name, unused] : properties) {
      charge_work();
      seen.insert(name);
    }
  }
  std::erase_if(required, [&](std::string_view name) {
    charge_work();
    return !seen.insert(name).second;
  });
  return required;
}

// XGrammar enforces a required property only if `properties` names it, so this adds the missing
// ones, with the schema of additionalProperties. That schema is written once under
// kAdditionalSchemas and referenced; copies would grow exponentially with nesting. Recursion is as
// deep as the document, which its parser bounds.
class PlainSchema {
 public:
  PlainSchema(element root, size_t max_bytes) : root_(root), bound_{.bytes_left = max_bytes} {}

  Result<std::string> rewrite() {
    BoundedJson out(bound_);
    if (root_.is_bool()) {
      QUIRE_RETURN_IF_ERROR(write_schema(root_, {}, out));
      return out.take();
    }
    const size_t max_bytes = bound_.bytes_left;
    out.open('{');
    QUIRE_RETURN_IF_ERROR(write_members(root_, {}, out));
    if (!additional_texts_.empty()) write_additional_schemas(out);
    out.close('}');
    if (!bound_.is_exceeded) return out.take();
    return invalid_argument(fmt::format(
        "[grammar] the JSON schema is too large in the form that is compiled, which adds \"type\" "
        "to branches and required names to \"properties\"; got more than {} bytes, expected a "
        "shorter schema",
        max_bytes));
  }

 private:
  // `type` is required by the enclosing schema; empty: none.
  Status write_schema(element value, std::string_view type, BoundedJson& out) {
    if (is_false(value)) {
      out.value("false");
      return {};
    }
    out.open('{');
    if (!value.is_bool()) {
      QUIRE_RETURN_IF_ERROR(write_members(value, type, out));
    } else if (!type.empty()) {
      out.field("type", json_string(type));
    }
    out.close('}');
    return {};
  }

  Status write_members(element value, std::string_view type, BoundedJson& out) {
    QUIRE_ASSIGN_OR_RETURN(const Members members, members_of(value));
    for (const std::string_view key : {"$defs", "definitions"}) {
      if (members.contains(key)) QUIRE_RETURN_IF_ERROR(write_named(members.at(key), key, out));
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view keyword, replacing_keyword(members));
    if (keyword.empty()) return write_typed(value.get_object().value_unsafe(), members, type, out);
    if (keyword == "const" || keyword == "enum") return write_values(members, type, out);
    return write_applied(members, keyword, type, out);
  }

  // Writes the values of const and enum that match the type, as an enum of JSON texts. XGrammar
  // would read their numbers as doubles and print them differently.
  static Status write_values(const Members& members, std::string_view outer, BoundedJson& out) {
    QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(members, outer));
    const bool has_const = members.contains("const");
    std::vector<std::string> kept;
    const auto keep = [&](element value) {
      charge_work();
      const bool is_wanted = (!has_const || are_equal(value, members.at("const"))) &&
                             (types.empty() || std::ranges::any_of(types, [&](auto type) {
                                return has_type(value, type);
                              }));
      if (is_wanted) kept.push_back(json_string(simdjson::minify(value)));
    };
    if (members.contains("enum")) {
      simdjson::dom::array values;
      if (members.at("enum").get_array().get(values)) {
        return invalid_argument("[grammar] the JSON schema's \"enum\" is not an array");
      }
      for (const element value : values) keep(value);
    } else {
      keep(members.at("const"));
    }
    if (kept.empty()) {
      return invalid_argument(
          "[grammar] the JSON schema has an \"enum\" or \"const\" that leaves "
          "no value of the \"type\"");
    }
    out.key("enum");
    out.open('[');
    for (const std::string& text : kept) out.value(text);
    out.close(']');
    return {};
  }

  // Writes a $ref, anyOf, oneOf or allOf. A type beside it is applied to each branch.
  Status write_applied(const Members& members, std::string_view keyword, std::string_view outer,
                       BoundedJson& out) {
    QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(members, outer));
    if (types.size() > 1) return unsupported_beside("type", keyword);
    const std::string_view type = types.empty() ? std::string_view() : types.front();
    const element value = members.at(keyword);
    if (keyword != "$ref") return write_list(value, keyword, type, out);
    std::string_view uri;
    if (value.get_string().get(uri) || !names_schema(uri)) {
      return invalid_argument(
          "[grammar] the JSON schema has a \"$ref\" that does not name a schema");
    }
    if (!target_of(uri)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has a \"$ref\" to a schema that it does not "
                      "contain; got \"{}\"",
                      clipped(uri)));
    }
    visited_uris_.clear();
    if (!reference_leads_to_schema(uri)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has a \"$ref\" that refers only to itself; "
                      "got \"{}\"",
                      clipped(uri)));
    }
    if (!type.empty() && !is_of_type(uri, type)) return unsupported_beside("type", "$ref");
    out.field(keyword, json_string(written_uri(uri)));
    return {};
  }

  // Whether `uri` leads, through references and branches, to a schema with more than references.
  // Each reference is followed once, so `visited_uris_` must be empty at first.
  bool reference_leads_to_schema(std::string_view uri) {
    if (leading_uris_.contains(uri)) return true;
    if (!visited_uris_.insert(uri).second) return false;
    const std::optional<element> target = target_of(uri);
    const bool leads = !target || leads_to_schema(*target);  // write_applied() reports it
    if (leads) leading_uris_.insert(uri);
    return leads;
  }

  bool leads_to_schema(element schema) {
    charge_work();
    std::string_view uri;
    if (!schema["$ref"].get(uri)) return reference_leads_to_schema(uri);
    for (const std::string_view keyword : {"anyOf", "oneOf", "allOf"}) {
      simdjson::dom::array branches;
      if (schema[keyword].get(branches)) continue;
      return std::any_of(branches.begin(), branches.end(),
                         [&](element branch) { return leads_to_schema(branch); });
    }
    return true;
  }

  std::optional<element> target_of(std::string_view uri) const {
    element target = root_;
    for (const std::string_view part : uri_parts(uri)) {
      charge_work();
      object schema;
      if (target.get_object().get(schema) || schema.at_key(part).get(target)) return std::nullopt;
    }
    return target;
  }

  // Whether the schema that `uri` names restricts its values to the type by itself.
  bool is_of_type(std::string_view uri, std::string_view type) const {
    const std::optional<element> target = target_of(uri);
    if (!target) return false;
    element restriction;
    if (!(*target)["type"].get(restriction)) {
      return restriction.is_string() && restriction.get_string().value_unsafe() == type;
    }
    if (!(*target)["const"].get(restriction)) return has_type(restriction, type);
    simdjson::dom::array values;
    if ((*target)["enum"].get_array().get(values)) return false;
    return std::all_of(values.begin(), values.end(), [&](element value) {
      charge_work();
      return has_type(value, type);
    });
  }

  // Rewrites a $ref whose target has moved to kAdditionalSchemas.
  std::string written_uri(std::string_view uri) {
    std::string written(uri);
    element at = root_;
    SchemaRole role = SchemaRole::kSchema;
    for (const std::string_view part : uri_parts(uri)) {
      charge_work();
      object schema;
      if (at.get_object().get(schema)) break;
      if (role == SchemaRole::kSchema && part == "additionalProperties") {
        const auto after = static_cast<size_t>(part.data() + part.size() - uri.data());
        if (const auto additional_idx = shared_additional(schema)) {
          written = additional_uri(*additional_idx) + std::string(uri.substr(after));
        }
      }
      if (schema.at_key(part).get(at)) break;
      role = member_role(role, part);
    }
    return written;
  }

  Status write_typed(object schema, const Members& members, std::string_view outer,
                     BoundedJson& out) {
    QUIRE_ASSIGN_OR_RETURN(std::vector<std::string_view> types, types_of(members, outer));
    if (types.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const std::string_view type, implied_type(members));
      if (type.empty()) return {};  // any value
      types = {type};
    }
    if (is_one_of("number", types)) std::erase(types, "integer");  // numbers include integers
    out.key("type");
    if (types.size() > 1) out.open('[');
    for (const std::string_view type : types) out.value(json_string(type));
    if (types.size() > 1) out.close(']');
    const auto is_possible = [&](std::string_view type) { return is_one_of(type, types); };
    if (is_possible("object")) QUIRE_RETURN_IF_ERROR(write_object(schema, members, out));
    if (is_possible("array")) QUIRE_RETURN_IF_ERROR(write_array(members, out));
    if (is_possible("string")) QUIRE_RETURN_IF_ERROR(write_string(members, out));
    if (!is_possible("number") && !is_possible("integer")) return {};
    QUIRE_ASSIGN_OR_RETURN(const auto fields, number_fields(members, is_possible("integer")));
    for (const NumberField& field : fields) out.field(field.keyword, field.json);
    return {};
  }

  Status write_object(object schema, const Members& members, BoundedJson& out) {
    QUIRE_RETURN_IF_ERROR(check_object(members));
    QUIRE_ASSIGN_OR_RETURN(const auto unnamed, unnamed_properties(schema));
    const std::optional<AdditionalSchema> additional = additional_schema_of(schema);
    if (!unnamed.empty() && additional && is_false(additional->schema)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema requires the property \"{}\", which its \"{}\" "
                      "forbids",
                      clipped(unnamed.front()), additional->keyword));
    }
    const std::optional<size_t> additional_idx = shared_additional(schema);
    for (const std::string_view key : {"unevaluatedProperties", "additionalProperties"}) {
      if (!members.contains(key)) continue;
      out.key(key);
      if (additional_idx && key == additional->keyword) {
        QUIRE_RETURN_IF_ERROR(write_additional(additional->schema, *additional_idx));
        out.value(additional_ref(*additional_idx));
      } else {
        QUIRE_RETURN_IF_ERROR(write_schema(members.at(key), {}, out));
      }
    }
    if (members.contains("patternProperties")) {
      QUIRE_RETURN_IF_ERROR(write_named(members.at("patternProperties"), "patternProperties", out));
    }
    if (members.contains("propertyNames")) {
      out.key("propertyNames");
      QUIRE_RETURN_IF_ERROR(write_schema(members.at("propertyNames"), "string", out));
    }
    copy(members, {"minProperties", "maxProperties", "required"}, out);
    out.key("properties");
    out.open('{');
    if (members.contains("properties")) {
      QUIRE_RETURN_IF_ERROR(write_fields(members.at("properties"), "properties", out));
    }
    const std::string unnamed_schema = additional_idx ? additional_ref(*additional_idx) : "{}";
    for (const std::string_view name : unnamed) out.field(name, unnamed_schema);
    out.close('}');
    return {};
  }

  // The index of an object's schema of additional properties among the shared ones. nullopt: it is
  // not shared, because no added property uses it or it restricts nothing.
  std::optional<size_t> shared_additional(object schema) {
    const std::optional<AdditionalSchema> additional = additional_schema_of(schema);
    object fields;
    if (!additional || additional->schema.get_object().get(fields)) return std::nullopt;
    if (fields.size() == 0) return std::nullopt;
    // The address of its first key identifies an object of the document.
    const auto [found, is_new] = additional_idxs_.try_emplace(fields.begin().key().data());
    if (is_new) {
      const auto unnamed = unnamed_properties(schema);
      if (unnamed.ok() && !unnamed->empty()) {
        found->second = additional_texts_.size();
        additional_texts_.emplace_back();
      }
    }
    return found->second;
  }

  Status write_additional(element additional, size_t idx) {
    BoundedJson out(bound_);
    QUIRE_RETURN_IF_ERROR(write_schema(additional, {}, out));
    additional_texts_[idx] = out.take();
    return {};
  }

  void write_additional_schemas(BoundedJson& out) {
    out.key(kAdditionalSchemas);
    out.open('{');
    for (size_t i = 0; i < additional_texts_.size(); ++i) {
      // write_additional() has charged these bytes.
      bound_.bytes_left += additional_texts_[i].size();
      if (!additional_texts_[i].empty()) out.field(std::to_string(i), additional_texts_[i]);
    }
    out.close('}');
  }

  static std::string additional_uri(size_t idx) {
    return fmt::format("#/{}/{}", kAdditionalSchemas, idx);
  }
  static std::string additional_ref(size_t idx) {
    return fmt::format(R"({{"$ref":"{}"}})", additional_uri(idx));
  }

  Status write_array(const Members& members, BoundedJson& out) {
    bool has_items = false;
    for (const std::string_view key : {"items", "unevaluatedItems"}) {
      if (!members.contains(key)) continue;
      has_items = true;
      out.key(key);
      QUIRE_RETURN_IF_ERROR(write_schema(members.at(key), {}, out));
    }
    if (members.contains("prefixItems")) {
      has_items = true;
      QUIRE_RETURN_IF_ERROR(write_list(members.at("prefixItems"), "prefixItems", {}, out));
    }
    if (!has_items) out.field("items", "{}");  // else XGrammar allows only an empty array
    copy(members, {"minItems", "maxItems"}, out);
    return {};
  }

  static Status write_string(const Members& members, BoundedJson& out) {
    copy(members, {"minLength", "maxLength", "pattern"}, out);
    if (!members.contains("format")) return {};
    std::string_view format;
    if (members.at("format").get_string().get(format)) {
      return invalid_argument("[grammar] the JSON schema's \"format\" is not a string");
    }
    if (is_loose_format(format)) return {};
    if (members.contains("pattern")) return unsupported_beside("format", "pattern");
    if (is_enforced_format(format)) {
      out.field("format", json_string(format));
      return {};
    }
    if (format.size() == 5 && format.starts_with("uuid") && format[4] >= '1' && format[4] <= '8' &&
        !members.contains("minLength") && !members.contains("maxLength")) {
      out.field("pattern", fmt::format(R"("^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{}[0-9a-f]{{3}}-)"
                                       R"([89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$")",
                                       format[4]));
      return {};
    }
    return not_supported(fmt::format("the \"format\" \"{}\"", format.substr(0, 64)));
  }

  Status write_list(element value, std::string_view keyword, std::string_view type,
                    BoundedJson& out) {
    simdjson::dom::array items;
    if (value.get_array().get(items) || items.size() == 0) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema's \"{}\" is not a list of schemas", keyword));
    }
    out.key(keyword);
    out.open('[');
    for (const element item : items) QUIRE_RETURN_IF_ERROR(write_schema(item, type, out));
    out.close(']');
    return {};
  }

  Status write_named(element value, std::string_view keyword, BoundedJson& out) {
    out.key(keyword);
    out.open('{');
    QUIRE_RETURN_IF_ERROR(write_fields(value, keyword, out));
    out.close('}');
    return {};
  }

  // The fields keep their order, which is the order of the output's properties.
  Status write_fields(element value, std::string_view keyword, BoundedJson& out) {
    object fields;
    if (value.get_object().get(fields)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema's \"{}\" is not an object", keyword));
    }
    QUIRE_RETURN_IF_ERROR(members_of(value).status());
    for (const auto [name, member] : fields) {
      out.key(name);
      QUIRE_RETURN_IF_ERROR(write_schema(member, {}, out));
    }
    return {};
  }

  element root_;
  TextBound bound_;
  std::vector<std::string> additional_texts_;  // empty: referenced but never written
  std::unordered_map<const char*, std::optional<size_t>> additional_idxs_;
  std::unordered_set<std::string_view> visited_uris_;  // for reference_leads_to_schema()
  std::unordered_set<std::string_view> leading_uris_;  // those that lead to a schema
};

}  // namespace

Result<std::string> plain_schema(std::string_view json, const GrammarLimits& limits) {
  const JsonLimits json_limits = {.max_bytes = limits.max_text_bytes,
                                  .max_depth = limits.max_json_depth};
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, "JSON schema", json_limits));
  return PlainSchema(document.root(), kMaxPlainGrowth * limits.max_text_bytes).rewrite();
}

}  // namespace quire::grammar
