#include "server/conversation_prompt.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/openai/json_fields.h"

namespace quire::server {
namespace {

using jinja::Value;
using Entries = std::vector<jinja::Dict::Entry>;

// Returns the member of a dict; null if there is none.
const Value* find_member(const Value& dict, std::string_view name) {
  if (!dict.is_dict()) return nullptr;
  for (const auto& [key, member] : dict.dict()->entries()) {
    if (key.is_string() && key.as_string() == name) return &member;
  }
  return nullptr;
}

std::string_view role_of(const Value& message) {
  const Value* const role = find_member(message, "role");
  return role != nullptr && role->is_string() ? std::string_view(role->as_string()) : "";
}

bool is_system(const Value& message) {
  return role_of(message) == "system" || role_of(message) == "developer";
}

// Returns the dict with another value of a member.
Value with_member(const Value& dict, std::string_view name, Value member) {
  Entries entries = dict.dict()->entries();
  entries.emplace_back(Value::literal(name), std::move(member));  // replaces the value before it
  return Value::of(Value::DictPtr(jinja::Dict::build(std::move(entries))));
}

// The message's path in the request; `owner` is its index in the template's list, plus 1.
std::string source_of(const TemplateInput& input, size_t owner) {
  if (owner <= input.sources.size()) return input.sources[owner - 1];
  return fmt::format("messages[{}]", owner - 1);
}

ApiError dropped_message(const TemplateInput& input, size_t owner) {
  const Value* const messages = find_member(input.variables, "messages");
  const bool is_known = messages != nullptr && owner <= messages->items().size();
  const std::string role(is_known ? role_of(messages->items()[owner - 1]) : "");
  return *field_error(
      Path(source_of(input, owner)),
      fmt::format(
          "got a message of the role '{}' of which the model's chat template writes nothing, "
          "expected a role that the template reads at this place",
          clipped(role)));
}

}  // namespace

std::optional<Value> with_merged_system(const Value& variables) {
  const Value* const messages = find_member(variables, "messages");
  if (messages == nullptr || !messages->is_sequence() || messages->items().empty()) return {};
  MarkedText joined;
  std::vector<Value> merged;
  const Value* first_system = nullptr;
  bool is_any_later = false;
  for (const Value& message : messages->items()) {
    const Value* const content = find_member(message, "content");
    if (!is_system(message) || content == nullptr || !content->is_string()) {
      merged.push_back(message);
      continue;
    }
    is_any_later = is_any_later || &message != &messages->items().front();
    if (first_system == nullptr) first_system = &message;
    if (!joined.text.empty()) joined.text += "\n\n";
    joined.append(*content->text());
  }
  if (!is_any_later) return {};
  merged.insert(merged.begin(),
                with_member(*first_system, "content", Value::marked(std::move(joined))));
  return with_member(variables, "messages", Value::list(std::move(merged)));
}

std::optional<ApiError> render_conversation(const EngineApi& engine, const TemplateInput& input,
                                            MarkedText& out) {
  Result<RenderedChat> prompt = engine.render_chat(input.variables);
  const auto is_whole = [](const Result<RenderedChat>& result) {
    return result.ok() && result->dropped == 0;
  };
  if (!is_whole(prompt)) {
    if (const std::optional<Value> merged = with_merged_system(input.variables)) {
      Result<RenderedChat> other = engine.render_chat(*merged);
      if (is_whole(other)) prompt = std::move(other);
    }
  }
  if (!prompt.ok()) return api_error(prompt.status());
  if (prompt->dropped != 0) return dropped_message(input, prompt->dropped);
  out = std::move(*prompt);
  return std::nullopt;
}

}  // namespace quire::server
