#include "server/tools/template_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace quire::server {
namespace {

using Element = simdjson::dom::element;
using Object = simdjson::dom::object;

constexpr size_t kMaxItems = 64;
constexpr size_t kMaxLiteralBytes = 256;

Result<Form> make_form(std::string_view text, FormKind kind) {
  if (kind == FormKind::kLiteral) return literal_form(text);
  return kind == FormKind::kForm ? parse_form(text) : pattern_form(text);
}

}  // namespace

Status bad_template(std::string_view what) {
  return invalid_argument(fmt::format("[tools] response template: {}", what));
}

Result<std::vector<std::string>> strings(Object object, std::string_view key) {
  std::vector<std::string> texts;
  Element value;
  if (object[key].get(value)) return texts;
  const auto add = [&](const Element& item) {
    std::string_view text;
    const bool is_valid = !item.get(text) && !text.empty() && text.size() <= kMaxLiteralBytes;
    if (is_valid) texts.emplace_back(text);
    return is_valid;
  };
  bool is_valid = true;
  simdjson::dom::array list;
  if (!value.get(list)) {
    for (const Element item : list) is_valid = is_valid && texts.size() < kMaxItems && add(item);
    is_valid = is_valid && !texts.empty();
  } else {
    is_valid = add(value);
  }
  if (is_valid) return texts;
  return bad_template(
      fmt::format("'{}' must be a text of 1 to {} bytes, or a list of 1 to {} such texts", key,
                  kMaxLiteralBytes, kMaxItems));
}

bool flag(Object object, std::string_view key) {
  bool value = false;
  return !object[key].get(value) && value;
}

std::string_view text_of(Object object, std::string_view key, std::string_view fallback) {
  std::string_view value;
  return object[key].get(value) ? fallback : value;
}

Status check_keys(Object object, std::string_view what, std::initializer_list<const char*> known) {
  for (const simdjson::dom::key_value_pair field : object) {
    const std::string_view key = field.key;
    const auto matches = [&](std::string_view name) { return name == key; };
    if (std::ranges::none_of(known, matches)) {
      return bad_template(fmt::format("{} has the unknown key '{}'; expected one of {}", what,
                                      clipped(key), fmt::join(known, ", ")));
    }
  }
  return {};
}

Status add_forms(Object object, std::string_view key, FormKind kind, Space space,
                 std::vector<Form>& forms) {
  std::vector<std::string> texts;
  if (kind == FormKind::kPattern) {
    const std::string_view pattern = text_of(object, key);
    if (!pattern.empty()) texts.emplace_back(pattern);
  } else {
    QUIRE_ASSIGN_OR_RETURN(texts, strings(object, key));
  }
  for (const std::string& text : texts) {
    Result<Form> form = make_form(text, kind);
    if (!form.ok()) return bad_template(fmt::format("'{}': {}", key, form.status().message()));
    forms.push_back(space == Space::kBefore ? after_space(std::move(*form)) : std::move(*form));
  }
  return {};
}

}  // namespace quire::server
