// The references ($ref) of a JSON schema to its own schemas.
#pragma once

#include <optional>
#include <string_view>
#include <unordered_set>

#include "base/json.h"
#include "quire/status.h"

namespace quire::grammar {

// The work of its calls counts against the thread's WorkBudget.
class SchemaReferences {
 public:
  // The document of `root` must outlive the object.
  explicit SchemaReferences(simdjson::dom::element root) : root_(root) {}

  // Returns the URI of a $ref. Fails if it names no schema of the document, or refers only to
  // itself.
  Result<std::string_view> uri_of(simdjson::dom::element reference);
  // Returns whether the schema that `uri` names restricts its values to the type by itself.
  bool is_of_type(std::string_view uri, std::string_view type) const;

 private:
  std::optional<simdjson::dom::element> target_of(std::string_view uri) const;
  // Returns whether `uri` leads, through references and branches, to a schema that is more than
  // references. `visited_` must be empty at the first call, because each reference is followed
  // once.
  bool reference_leads_to_schema(std::string_view uri);
  bool leads_to_schema(simdjson::dom::element schema);

  simdjson::dom::element root_;
  std::unordered_set<std::string_view> visited_;  // URIs
  std::unordered_set<std::string_view> leading_;  // URIs that lead to a schema
};

}  // namespace quire::grammar
