#include "grammar/schema_references.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "grammar/schema_keywords.h"
#include "grammar/work_budget.h"

namespace quire::grammar {

using simdjson::dom::element;

Result<std::string_view> SchemaReferences::uri_of(element reference) {
  std::string_view uri;
  if (reference.get_string().get(uri) || !names_schema(uri)) {
    return invalid_argument("[grammar] the JSON schema has a \"$ref\" that does not name a schema");
  }
  if (!target_of(uri)) {
    return invalid_argument(
        fmt::format("[grammar] the JSON schema has a \"$ref\" to a schema that it does not "
                    "contain; got \"{}\"",
                    clipped(uri)));
  }
  visited_.clear();
  if (!reference_leads_to_schema(uri)) {
    return invalid_argument(
        fmt::format("[grammar] the JSON schema has a \"$ref\" that refers only to itself; "
                    "got \"{}\"",
                    clipped(uri)));
  }
  return uri;
}

bool SchemaReferences::reference_leads_to_schema(std::string_view uri) {
  if (leading_.contains(uri)) return true;
  if (!visited_.insert(uri).second) return false;
  const std::optional<element> target = target_of(uri);
  const bool leads = !target || leads_to_schema(*target);  // uri_of() reports its absence
  if (leads) leading_.insert(uri);
  return leads;
}

bool SchemaReferences::leads_to_schema(element schema) {
  charge_work();
  if (allows_nothing(schema)) return false;
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

std::optional<element> SchemaReferences::target_of(std::string_view uri) const {
  element target = root_;
  for (const std::string_view part : uri_parts(uri)) {
    charge_work();
    simdjson::dom::object schema;
    if (target.get_object().get(schema) || schema.at_key(part).get(target)) return std::nullopt;
  }
  return target;
}

bool SchemaReferences::is_of_type(std::string_view uri, std::string_view type) const {
  const std::optional<element> target = target_of(uri);
  if (!target) return false;
  element restriction;
  bool is_nullable = false;
  if (!(*target)["nullable"].get_bool().get(is_nullable) && is_nullable) return false;
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

}  // namespace quire::grammar
