// Rewrites a JSON schema into the forms that XGrammar enforces. XGrammar reads one of $ref, const,
// enum, anyOf, oneOf, allOf and type, and ignores the keywords beside it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"
#include "grammar/schema_references.h"
#include "grammar/work_budget.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

// The root's member that holds the shared schemas of additional properties (see PlainSchema). A
// document cannot refer to it or contain it: check_schema refuses a $ref with '~', and unknown
// keywords are not written.
constexpr std::string_view kAdditionalSchemas = "~rest";

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

// Returns whether the schema lists the schemas of a tuple's items under "items", as before draft
// 2020-12.
bool has_item_list(const Members& members) {
  const auto found = members.find("items");
  return found != members.end() && found->second.is_array();
}

// Moves the keywords of a tuple of draft 7 to those of draft 2020-12: "items" to "prefixItems", and
// "additionalItems" to "items".
Status rename_tuple(Members& members) {
  const auto additional = members.find("additionalItems");
  const bool has_additional = additional != members.end();
  if (members.contains("prefixItems")) {
    if (has_item_list(members)) {
      return not_supported("a list of \"items\" beside \"prefixItems\"",
                           "write the list as \"prefixItems\"");
    }
    if (has_additional) {
      return not_supported("\"additionalItems\" beside \"prefixItems\"",
                           "write the schema of further items as \"items\"");
    }
  }
  if (has_item_list(members)) {
    const element list = members.at("items");
    members.erase("items");
    if (list.get_array().value_unsafe().size() > 0) members.emplace("prefixItems", list);
    if (has_additional) members.emplace("items", additional->second);
  }
  members.erase("additionalItems");  // has no effect without a list
  return {};
}

void copy(const Members& members, const std::vector<std::string_view>& keywords, BoundedJson& out) {
  for (const std::string_view keyword : keywords) {
    if (members.contains(keyword)) out.field(keyword, simdjson::minify(members.at(keyword)));
  }
}

// The schema of additional properties (which `properties` does not name), and its keyword.
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
// deep as the document; the parser bounds its depth.
class PlainSchema {
 public:
  // On failure, `path` leads to the place.
  PlainSchema(element root, const GrammarLimits& limits, SchemaPath& path)
      : root_(root),
        limits_(limits),
        path_(path),
        bound_{.bytes_left = kMaxPlainGrowth * limits.max_text_bytes},
        references_(root) {}

  Result<std::string> rewrite() {
    BoundedJson out(bound_);
    if (root_.is_bool() || allows_nothing(root_)) {
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
  Status write_member(std::string_view name, element value, std::string_view type,
                      BoundedJson& out) {
    return at_member(path_, name, [&] { return write_schema(value, type, out); });
  }

  // `type` is required by the enclosing schema; empty: none.
  Status write_schema(element value, std::string_view type, BoundedJson& out) {
    if (allows_nothing(value)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema has {} in place of a schema, which leaves no "
                      "value; expected a schema, or leave it out",
                      value.is_bool() ? "\"false\"" : "{\"not\": {}}"));
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
    QUIRE_RETURN_IF_ERROR(check_nullable(members));
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
    simdjson::dom::array branches;
    if (keyword == "allOf" && !value.get_array().get(branches) && branches.size() > 1) {
      return not_supported("an \"allOf\" of several schemas",
                           "write one schema with the keywords of all of them");
    }
    if (keyword != "$ref") {
      out.key(keyword);
      return write_list(value, keyword, type, out);
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view uri, references_.uri_of(value));
    if (!type.empty() && !references_.is_of_type(uri, type)) {
      return unsupported_beside("type", "$ref");
    }
    out.field(keyword, json_string(written_uri(uri)));
    return {};
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
    if (is_possible("string")) {
      QUIRE_ASSIGN_OR_RETURN(const auto fields, string_fields(members, limits_));
      for (const KeywordField& field : fields) out.field(field.keyword, field.json);
    }
    if (is_possible("number") || is_possible("integer")) {
      QUIRE_ASSIGN_OR_RETURN(const auto fields, number_fields(members, is_possible("integer")));
      for (const KeywordField& field : fields) out.field(field.keyword, field.json);
    }
    return {};
  }

  Status write_object(object schema, const Members& members, BoundedJson& out) {
    QUIRE_RETURN_IF_ERROR(check_object(members));
    QUIRE_ASSIGN_OR_RETURN(const auto unnamed, unnamed_properties(schema));
    const std::optional<AdditionalSchema> additional = additional_schema_of(schema);
    if (!unnamed.empty() && additional && allows_nothing(additional->schema)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema requires the property \"{}\", which its \"{}\" "
                      "forbids",
                      clipped(unnamed.front()), additional->keyword));
    }
    QUIRE_RETURN_IF_ERROR(check_counts(members, "minProperties", "maxProperties"));
    const std::optional<size_t> additional_idx = shared_additional(schema);
    for (const std::string_view key : {"unevaluatedProperties", "additionalProperties"}) {
      if (!members.contains(key)) continue;
      out.key(key);
      if (allows_nothing(members.at(key))) {
        out.value("false");
      } else if (additional_idx && key == additional->keyword) {
        QUIRE_RETURN_IF_ERROR(at_member(
            path_, key, [&] { return write_additional(additional->schema, *additional_idx); }));
        out.value(additional_ref(*additional_idx));
      } else {
        QUIRE_RETURN_IF_ERROR(write_member(key, members.at(key), {}, out));
      }
    }
    if (members.contains("patternProperties")) {
      QUIRE_RETURN_IF_ERROR(write_patterns(members.at("patternProperties"), out));
    }
    if (members.contains("propertyNames")) {
      out.key("propertyNames");
      QUIRE_RETURN_IF_ERROR(
          write_member("propertyNames", members.at("propertyNames"), "string", out));
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

  // Returns the index of an object's schema of additional properties among the shared schemas.
  // nullopt: the schema is not shared, because no added property uses it or it restricts nothing.
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

  // Fails if the bounds leave no number of items.
  static Status check_items(const Members& members) {
    QUIRE_RETURN_IF_ERROR(check_counts(members, "minItems", "maxItems"));
    simdjson::dom::array prefix;
    const auto found = members.find("prefixItems");
    const bool has_prefix = found != members.end() && !found->second.get_array().get(prefix);
    const auto num_prefix = static_cast<int64_t>(has_prefix ? prefix.size() : 0);
    const int64_t most = count_of(members, "maxItems").value_or(num_prefix);
    if (most < num_prefix) {
      return not_supported(
          fmt::format("\"prefixItems\" with {} schemas beside \"maxItems\" {}", num_prefix, most),
          "write as many schemas as \"maxItems\" allows");
    }
    const bool is_closed = std::ranges::any_of(
        std::array{"items", "unevaluatedItems"},
        [&](const char* key) { return members.contains(key) && allows_nothing(members.at(key)); });
    const int64_t least = count_of(members, "minItems").value_or(0);
    if (!is_closed || least <= num_prefix) return {};
    return empty_range("minItems", std::to_string(least), "prefixItems",
                       fmt::format("of {} without further \"items\"", num_prefix));
  }

  // `members` is a copy, in which a tuple has the keywords of draft 2020-12.
  Status write_array(Members members, BoundedJson& out) {
    const std::string_view list = has_item_list(members) ? "items" : "prefixItems";
    const std::string_view further = has_item_list(members) ? "additionalItems" : "items";
    QUIRE_RETURN_IF_ERROR(rename_tuple(members));
    QUIRE_RETURN_IF_ERROR(check_items(members));
    bool has_items = false;
    for (const std::string_view key : {"items", "unevaluatedItems"}) {
      if (!members.contains(key)) continue;
      has_items = true;
      out.key(key);
      if (allows_nothing(members.at(key))) {
        out.value("false");
      } else {
        const std::string_view name = std::string_view(key) == "items" ? further : key;
        QUIRE_RETURN_IF_ERROR(write_member(name, members.at(key), {}, out));
      }
    }
    if (members.contains("prefixItems")) {
      has_items = true;
      out.key("prefixItems");
      QUIRE_RETURN_IF_ERROR(write_list(members.at("prefixItems"), list, {}, out));
    }
    if (!has_items) out.field("items", "{}");  // otherwise XGrammar allows only an empty array
    copy(members, {"minItems", "maxItems"}, out);
    return {};
  }

  // Writes patternProperties, whose names are regexes.
  Status write_patterns(element value, BoundedJson& out) {
    object patterns;
    if (value.get_object().get(patterns)) {
      return invalid_argument("[grammar] the JSON schema's \"patternProperties\" is not an object");
    }
    QUIRE_RETURN_IF_ERROR(members_of(value).status());
    out.key("patternProperties");
    out.open('{');
    for (const simdjson::dom::key_value_pair field : patterns) {
      const std::string_view pattern = field.key;
      QUIRE_ASSIGN_OR_RETURN(
          const RegexText regex,
          plain_regex("a pattern of the JSON schema", pattern, limits_, RegexForm::kJsonString));
      out.key(regex.text);
      QUIRE_RETURN_IF_ERROR(at_member(path_, "patternProperties",
                                      [&] { return write_member(pattern, field.value, {}, out); }));
    }
    out.close('}');
    return {};
  }

  // Writes the list of schemas in `keyword`. Leaves out branches that allow no value: zod 3 writes
  // an optional value as an "anyOf" with {"not": {}}.
  Status write_list(element value, std::string_view keyword, std::string_view type,
                    BoundedJson& out) {
    simdjson::dom::array items;
    if (value.get_array().get(items) || items.size() == 0) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema's \"{}\" is not a list of schemas", keyword));
    }
    const bool is_union = keyword == "anyOf" || keyword == "oneOf";
    if (is_union && std::all_of(items.begin(), items.end(), allows_nothing)) {
      return invalid_argument(fmt::format(
          "[grammar] the JSON schema has an \"{}\" whose schemas allow no value", keyword));
    }
    out.open('[');
    size_t idx = 0;
    for (const element item : items) {
      const std::string name = std::to_string(idx++);
      if (is_union && allows_nothing(item)) continue;
      QUIRE_RETURN_IF_ERROR(
          at_member(path_, keyword, [&] { return write_member(name, item, type, out); }));
    }
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
    for (const simdjson::dom::key_value_pair field : fields) {
      out.key(field.key);
      QUIRE_RETURN_IF_ERROR(
          at_member(path_, keyword, [&] { return write_member(field.key, field.value, {}, out); }));
    }
    return {};
  }

  element root_;
  const GrammarLimits& limits_;
  SchemaPath& path_;
  TextBound bound_;
  std::vector<std::string> additional_texts_;  // empty: referenced but never written
  std::unordered_map<const char*, std::optional<size_t>> additional_idxs_;
  SchemaReferences references_;
};

// Returns `#/properties/a` for the names properties and a.
std::string pointer_of(const SchemaPath& path) {
  std::string pointer = "#";
  for (const std::string& name : path) pointer += "/" + name;
  return pointer;
}

// Returns the error with the tool and the path of the faulty schema in front: `[grammar] tool "f",
// #/properties/a: the JSON schema has …`. The path of a tool's schema begins at its parameters.
Status located(const Status& error, const SchemaPath& path, std::span<const ToolSchema> tools) {
  constexpr std::string_view kPrefix = "[grammar] ";
  std::string pointer = pointer_of(path);
  std::string place;
  for (const ToolSchema& schema : tools) {
    if (pointer != schema.path && !pointer.starts_with(schema.path + "/")) continue;
    pointer = "#" + pointer.substr(schema.path.size());
    place = fmt::format("tool \"{}\"", clipped(schema.tool));
    break;
  }
  if (pointer != "#") place += fmt::format("{}{}", place.empty() ? "" : ", ", one_line(pointer));
  std::string_view message = error.message();
  if (place.empty() || !message.starts_with(kPrefix)) return error;
  message.remove_prefix(kPrefix.size());
  return {error.code(), fmt::format("{}{}: {}", kPrefix, place, message)};
}

}  // namespace

Result<std::string> plain_schema(std::string_view json, const GrammarLimits& limits,
                                 std::span<const ToolSchema> tools) {
  const JsonLimits json_limits = {.max_bytes = limits.max_text_bytes,
                                  .max_depth = limits.max_json_depth};
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, "JSON schema", json_limits));
  SchemaPath path;
  Status checked = check_schema(document.root(), limits, path);
  if (!checked.ok()) return located(checked, path, tools);
  Result<std::string> plain = PlainSchema(document.root(), limits, path).rewrite();
  if (!plain.ok()) return located(plain.status(), path, tools);
  return plain;
}

}  // namespace quire::grammar
