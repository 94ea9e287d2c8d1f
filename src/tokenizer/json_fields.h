// Typed access to the fields of a component's JSON object. Errors name the field.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/text.h"

namespace quire {

using JsonElement = simdjson::dom::element;

// Returns the field; nullopt if it is absent or null.
inline std::optional<JsonElement> json_field(JsonElement object, std::string_view name) {
  JsonElement value;
  if (object.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) return std::nullopt;
  return value;
}

template <typename T>
constexpr std::string_view json_type_name() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, std::string_view>) return "a string";
  if constexpr (std::is_same_v<T, int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, simdjson::dom::array>) return "an array";
  if constexpr (std::is_same_v<T, simdjson::dom::object>) return "an object";
}

template <typename T>
Result<T> json_value(JsonElement element, std::string_view name) {
  T value;
  if (element.get(value) != simdjson::SUCCESS) {
    return invalid_argument(
        fmt::format("field \"{}\" has the wrong type; expected {}", name, json_type_name<T>()));
  }
  return value;
}

template <typename T>
Result<T> json_required(JsonElement object, std::string_view name) {
  const std::optional<JsonElement> element = json_field(object, name);
  if (!element) {
    return invalid_argument(
        fmt::format("field \"{}\" is missing; expected {}", name, json_type_name<T>()));
  }
  return json_value<T>(*element, name);
}

template <typename T>
Result<T> json_or(JsonElement object, std::string_view name, T fallback) {
  const std::optional<JsonElement> element = json_field(object, name);
  if (!element) return fallback;
  return json_value<T>(*element, name);
}

// Refuses an object that has a key twice, because JSON readers differ in which value they use. Does
// not check the object's values, such as the vocabulary.
inline Status check_keys(JsonElement json) {
  simdjson::dom::object object;
  if (json.get(object) != simdjson::SUCCESS) return {};  // the reader of its fields reports that
  const auto key = find_repeated_key(object);
  if (!key) return {};
  return invalid_argument(
      fmt::format("the key \"{}\" appears twice; expected it once", clipped(*key)));
}

inline Status unsupported_type(std::string_view part, std::string_view type,
                               std::string_view supported) {
  return unimplemented(fmt::format("{} type \"{}\" is not supported; expected one of {}", part,
                                   clipped(type), supported));
}

}  // namespace quire
