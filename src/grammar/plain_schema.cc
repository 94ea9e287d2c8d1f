// JSON schemas in the forms that XGrammar enforces. It looks at one of $ref, const, enum, anyOf,
// oneOf, allOf and type, and passes over what stands beside it.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "grammar/check_spec.h"
#include "grammar/schema_keywords.h"

namespace quire::grammar {
namespace {

using simdjson::dom::element;

std::string quoted(std::string_view text) {
  JsonWriter writer;
  writer.value(text);
  return writer.text();
}

// An object, member by member.
class ObjectText {
 public:
  void add(std::string_view key, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    text_ += quoted(key);
    text_ += ':';
    text_ += value;
  }
  std::string take() { return std::move(text_ += '}'); }

 private:
  std::string text_ = "{";
};

std::string array_text(const std::vector<std::string>& items) {
  return fmt::format("[{}]", fmt::join(items, ","));
}

void copy(const Members& members, const std::vector<std::string_view>& keywords, ObjectText& out) {
  for (const std::string_view keyword : keywords) {
    if (members.contains(keyword)) out.add(keyword, simdjson::minify(members.at(keyword)));
  }
}

// Recursion is as deep as the document, which its parser bounds.
class PlainSchema {
 public:
  explicit PlainSchema(element root) : root_(root) {}

  // `type`: what the value is besides; empty: nothing is said.
  Result<std::string> schema(element value, std::string_view type) const {
    if (value.is_bool()) {
      if (!value.get_bool().value_unsafe()) return std::string("false");
      return type.empty() ? std::string("{}") : R"({"type":)" + quoted(type) + "}";
    }
    QUIRE_ASSIGN_OR_RETURN(const Members members, members_of(value));
    ObjectText out;
    for (const std::string_view key : {"$defs", "definitions"}) {
      if (!members.contains(key)) continue;
      QUIRE_ASSIGN_OR_RETURN(const std::string names, named_schemas(members.at(key), key));
      out.add(key, names);
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string_view head, head_of(members));
    if (head.empty()) {
      QUIRE_RETURN_IF_ERROR(write_typed(members, type, out));
    } else if (head == "const" || head == "enum") {
      QUIRE_RETURN_IF_ERROR(write_values(members, type, out));
    } else {
      QUIRE_RETURN_IF_ERROR(write_applied(members, head, type, out));
    }
    return out.take();
  }

 private:
  // const and enum: those values that have the type.
  static Status write_values(const Members& members, std::string_view outer, ObjectText& out) {
    QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(members, outer));
    const bool has_const = members.contains("const");
    const std::string constant = has_const ? simdjson::minify(members.at("const")) : "";
    std::vector<std::string> kept;
    const auto keep = [&](element value) {
      std::string text = simdjson::minify(value);
      const bool is_wanted = (!has_const || text == constant) &&
                             (types.empty() || std::ranges::any_of(types, [&](auto type) {
                                return has_type(value, type);
                              }));
      if (is_wanted) kept.push_back(std::move(text));
    };
    if (members.contains("enum")) {
      simdjson::dom::array values;
      if (members.at("enum").get_array().get(values)) {
        return invalid_argument("[grammar] the JSON schema's \"enum\" is no array");
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
    out.add("enum", array_text(kept));
    return {};
  }

  // $ref, anyOf, oneOf, allOf; a type beside them is handed on.
  Status write_applied(const Members& members, std::string_view head, std::string_view outer,
                       ObjectText& out) const {
    QUIRE_ASSIGN_OR_RETURN(const auto types, types_of(members, outer));
    if (types.size() > 1) return beside("type", head);
    const std::string_view type = types.empty() ? std::string_view() : types.front();
    const element value = members.at(head);
    if (head == "$ref") {
      std::string_view uri;
      if (value.get_string().get(uri) || !names_schema(uri)) {
        return invalid_argument("[grammar] the JSON schema has a \"$ref\" that names no schema");
      }
      if (!type.empty() && !is_of_type(uri, type)) return beside("type", "$ref");
      out.add(head, quoted(uri));
      return {};
    }
    QUIRE_ASSIGN_OR_RETURN(const std::string branches, schemas(value, head, type));
    out.add(head, branches);
    return {};
  }

  // Whether the schema that `uri` names says by itself that its values have the type.
  bool is_of_type(std::string_view uri, std::string_view type) const {
    element target = root_;
    if (uri != "#" && root_.at_pointer(uri.substr(1)).get(target)) return false;
    element said;
    if (!target["type"].get(said))
      return said.is_string() && said.get_string().value_unsafe() == type;
    if (!target["const"].get(said)) return has_type(said, type);
    simdjson::dom::array values;
    if (target["enum"].get_array().get(values)) return false;
    return std::all_of(values.begin(), values.end(),
                       [&](element value) { return has_type(value, type); });
  }

  Status write_typed(const Members& members, std::string_view outer, ObjectText& out) const {
    QUIRE_ASSIGN_OR_RETURN(std::vector<std::string_view> types, types_of(members, outer));
    if (types.empty()) {
      QUIRE_ASSIGN_OR_RETURN(const std::string_view type, implied_type(members));
      if (type.empty()) return {};  // any value
      types = {type};
    }
    std::vector<std::string> names;
    for (const std::string_view type : types) names.push_back(quoted(type));
    out.add("type", names.size() == 1 ? names.front() : array_text(names));
    const auto is_possible = [&](std::string_view type) { return is_one_of(type, types); };
    if (is_possible("object")) QUIRE_RETURN_IF_ERROR(write_object(members, out));
    if (is_possible("array")) QUIRE_RETURN_IF_ERROR(write_array(members, out));
    if (is_possible("string")) QUIRE_RETURN_IF_ERROR(write_string(members, out));
    if (is_possible("number") || is_possible("integer")) copy(members, number_keywords(), out);
    return {};
  }

  Status write_object(const Members& members, ObjectText& out) const {
    QUIRE_RETURN_IF_ERROR(check_object(members));
    std::string rest = "{}";  // what a property that is not named may be
    for (const std::string_view key : {"unevaluatedProperties", "additionalProperties"}) {
      if (!members.contains(key)) continue;
      QUIRE_ASSIGN_OR_RETURN(rest, schema(members.at(key), {}));
      out.add(key, rest);
    }
    if (members.contains("patternProperties")) {
      QUIRE_ASSIGN_OR_RETURN(const std::string patterns,
                             named_schemas(members.at("patternProperties"), "patternProperties"));
      out.add("patternProperties", patterns);
    }
    if (members.contains("propertyNames")) {
      QUIRE_ASSIGN_OR_RETURN(const std::string names,
                             schema(members.at("propertyNames"), "string"));
      out.add("propertyNames", names);
    }
    copy(members, {"minProperties", "maxProperties"}, out);
    return write_properties(members, rest, out);
  }

  // XGrammar demands of the required ones only those that are named as properties.
  Status write_properties(const Members& members, const std::string& rest, ObjectText& out) const {
    std::vector<std::string_view> required;
    if (const auto found = members.find("required"); found != members.end()) {
      if (!found->second.is_array() || !read_strings(found->second, required)) {
        return invalid_argument("[grammar] the JSON schema's \"required\" is no list of names");
      }
      out.add("required", simdjson::minify(found->second));
    }
    std::vector<std::pair<std::string_view, std::string>> more;
    std::unordered_set<std::string_view> seen;
    const auto properties = members.find("properties");
    for (const std::string_view name : required) {
      if (properties != members.end() && !properties->second.at_key(name).error()) continue;
      if (!seen.insert(name).second) continue;
      if (rest == "false") {
        return invalid_argument(
            fmt::format("[grammar] the JSON schema requires the property \"{}\", which its "
                        "\"additionalProperties\" forbids",
                        name.substr(0, 64)));
      }
      more.emplace_back(name, rest);
    }
    std::string names = "{}";
    if (properties != members.end()) {
      QUIRE_ASSIGN_OR_RETURN(names, named_schemas(properties->second, "properties"));
    }
    names.pop_back();
    for (const auto& [name, text] : more) {
      names += fmt::format("{}{}:{}", names.size() > 1 ? "," : "", quoted(name), text);
    }
    out.add("properties", names + "}");
    return {};
  }

  Status write_array(const Members& members, ObjectText& out) const {
    bool has_items = false;
    for (const std::string_view key : {"items", "unevaluatedItems"}) {
      if (!members.contains(key)) continue;
      has_items = true;
      QUIRE_ASSIGN_OR_RETURN(const std::string items, schema(members.at(key), {}));
      out.add(key, items);
    }
    if (members.contains("prefixItems")) {
      has_items = true;
      QUIRE_ASSIGN_OR_RETURN(const std::string items,
                             schemas(members.at("prefixItems"), "prefixItems", {}));
      out.add("prefixItems", items);
    }
    if (!has_items) out.add("items", "{}");  // else the array would be empty
    copy(members, {"minItems", "maxItems"}, out);
    return {};
  }

  static Status write_string(const Members& members, ObjectText& out) {
    copy(members, {"minLength", "maxLength", "pattern"}, out);
    if (!members.contains("format")) return {};
    std::string_view format;
    if (members.at("format").get_string().get(format)) {
      return invalid_argument("[grammar] the JSON schema's \"format\" is no string");
    }
    if (is_loose_format(format)) return {};
    if (members.contains("pattern")) return beside("format", "pattern");
    if (is_enforced_format(format)) {
      out.add("format", quoted(format));
      return {};
    }
    if (format.size() == 5 && format.starts_with("uuid") && format[4] >= '1' && format[4] <= '8' &&
        !members.contains("minLength") && !members.contains("maxLength")) {
      out.add("pattern", fmt::format(R"("^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{}[0-9a-f]{{3}}-)"
                                     R"([89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$")",
                                     format[4]));
      return {};
    }
    return not_supported(fmt::format("the \"format\" \"{}\"", format.substr(0, 64)));
  }

  Result<std::string> schemas(element value, std::string_view keyword,
                              std::string_view type) const {
    simdjson::dom::array items;
    if (value.get_array().get(items) || items.size() == 0) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema's \"{}\" is no list of schemas", keyword));
    }
    std::vector<std::string> out;
    for (const element item : items) {
      QUIRE_ASSIGN_OR_RETURN(std::string text, schema(item, type));
      out.push_back(std::move(text));
    }
    return array_text(out);
  }

  // In their order, which is the answer's.
  Result<std::string> named_schemas(element value, std::string_view keyword) const {
    simdjson::dom::object fields;
    if (value.get_object().get(fields)) {
      return invalid_argument(
          fmt::format("[grammar] the JSON schema's \"{}\" is no object", keyword));
    }
    QUIRE_RETURN_IF_ERROR(members_of(value).status());
    ObjectText out;
    for (const auto [name, member] : fields) {
      QUIRE_ASSIGN_OR_RETURN(const std::string text, schema(member, {}));
      out.add(name, text);
    }
    return out.take();
  }

  element root_;
};

}  // namespace

Result<std::string> plain_schema(std::string_view json, const GrammarLimits& limits) {
  const JsonLimits json_limits = {.max_bytes = limits.max_text_bytes,
                                  .max_depth = limits.max_json_depth};
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document,
                         JsonDocument::parse(json, "JSON schema", json_limits));
  return PlainSchema(document.root()).schema(document.root(), {});
}

}  // namespace quire::grammar
