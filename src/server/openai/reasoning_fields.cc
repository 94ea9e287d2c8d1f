#include "server/openai/reasoning_fields.h"

#include <algorithm>
#include <string>

#include "server/openai/conversation.h"

namespace quire::server {
namespace {

constexpr std::string_view kEffort = "reasoning_effort";
constexpr std::string_view kThinking = "enable_thinking";

// Whether the template is known and has the name.
bool reads(const RequestDefaults& defaults, std::string_view name) {
  return !defaults.chat_template.empty() && !template_ignores(defaults, name);
}

}  // namespace

bool add_effort(std::string_view effort, const RequestDefaults& defaults,
                std::vector<jinja::Dict::Entry>& out) {
  const bool is_off = effort == "none";
  const bool has_effort = !template_ignores(defaults, kEffort);
  const bool has_switch = reads(defaults, kThinking);
  if (has_switch) add_entry(kThinking, jinja::Value::boolean(!is_off), out);
  if (!has_effort) return is_off && has_switch;
  const bool is_rare = is_off || effort == "minimal";
  const bool is_known = !is_rare || template_may_read(defaults, effort);
  add_entry(kEffort, jinja::Value::string(is_known ? effort : "low"), out);
  return true;
}

void add_reasoning(const jinja::Value& reasoning, const RequestDefaults& defaults,
                   std::vector<jinja::Dict::Entry>& out) {
  for (const std::string_view name : {"reasoning_content", "reasoning", "thinking"}) {
    if (name != "reasoning_content" && !reads(defaults, name)) continue;
    const bool is_there = std::ranges::any_of(
        out, [&](const auto& entry) { return entry.first.as_string() == name; });
    if (!is_there) add_entry(name, reasoning, out);
  }
}

}  // namespace quire::server
