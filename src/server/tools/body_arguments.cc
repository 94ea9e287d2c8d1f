#include "server/tools/body_arguments.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "server/tools/loose_json.h"

namespace quire::server {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string_view>>;

constexpr size_t kMaxPairs = 1024;

Pairs pairs_of_pattern(const TextPattern& pattern, std::string_view body) {
  Pairs pairs;
  for (size_t from = 0; pairs.size() < kMaxPairs;) {
    const TextPattern::Found found = pattern.find(body, from);
    if (found.result != TextPattern::Result::kYes) break;
    pairs.emplace_back(trimmed(found.group("key")), found.group("value"));
    from = found.end;
  }
  return pairs;
}

Pairs pairs_of_lines(const BodyFormat& format, std::string_view body) {
  Pairs pairs;
  while (!body.empty() && pairs.size() < kMaxPairs) {
    const size_t end = std::min(body.find(format.line_sep), body.size());
    const std::string_view line = trimmed(body.substr(0, end));
    body.remove_prefix(std::min(end + format.line_sep.size(), body.size()));
    const size_t middle = line.find(format.kv_sep);
    if (middle == std::string_view::npos) continue;
    pairs.emplace_back(trimmed(line.substr(0, middle)),
                       trimmed(line.substr(middle + format.kv_sep.size())));
  }
  return pairs;
}

// Returns the value's JSON; "" if the parser cannot read the value.
std::string value_of(std::string_view parser, std::string_view text, ArgumentTypes types) {
  if (parser.empty()) return typed_value(text, types);
  if (parser == "text") return typed_value(trimmed(text), {});
  const std::string_view value = trimmed(text);
  if (parser == "bool") {
    return equals_ignoring_case(value, "true") || value == "1" ? "true" : "false";
  }
  if (parser == "json") {
    if (value == "true" || value == "false" || value == "null") return std::string(value);
    if (is_json_number(value)) return std::string(value);
    const std::string container = container_value(value);
    if (!container.empty() || !value.starts_with('"')) return container;
    // Reads a string as the item of a list, because container_value() reads only containers.
    std::string list = "[";
    list += value;
    const std::string item = container_value(list + "]");
    return item.empty() ? item : item.substr(1, item.size() - 2);
  }
  const uint8_t type = parser == "int" ? ArgumentTypes::kInteger : ArgumentTypes::kNumber;
  const std::string number = typed_value(value, {.bits = type});
  return number.starts_with('"') ? std::string() : number;
}

}  // namespace

std::optional<std::string> body_arguments(
    const BodyFormat& format, std::string_view body,
    const std::map<std::string, ArgumentTypes, std::less<>>& types) {
  const Pairs pairs = format.tag_pattern != nullptr ? pairs_of_pattern(*format.tag_pattern, body)
                                                    : pairs_of_lines(format, body);
  if (pairs.empty() && !trimmed(body).empty()) return std::nullopt;
  std::vector<std::pair<std::string, std::vector<std::string>>> members;
  for (const auto& [key, text] : pairs) {
    const auto found = types.find(key);
    std::string value =
        value_of(format.value_parser, text, found == types.end() ? ArgumentTypes() : found->second);
    if (value.empty()) return std::nullopt;
    const auto same =
        std::ranges::find(members, key, [](const auto& member) { return member.first; });
    if (same == members.end()) {
      members.push_back({key, {std::move(value)}});
    } else if (format.merges) {
      same->second.push_back(std::move(value));
    } else {
      same->second.front() = std::move(value);
    }
  }
  std::string json = "{";
  for (const auto& [key, values] : members) {
    json += json.size() > 1 ? ", \"" : "\"";
    append_escaped(json, key);
    json += "\": ";
    if (values.size() > 1) json += '[';
    for (size_t i = 0; i < values.size(); ++i) json += (i > 0 ? ", " : "") + values[i];
    if (values.size() > 1) json += ']';
  }
  return json + "}";
}

}  // namespace quire::server
