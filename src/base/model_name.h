// The names of models in requests and commands.
#pragma once

#include <string_view>

#include "base/ascii.h"

namespace quire {

// Returns "smollm2" for "smollm2:latest", which is Ollama's name for a model without a tag.
constexpr std::string_view without_latest(std::string_view name) {
  constexpr std::string_view kLatest = ":latest";
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return name;
}

// As in Ollama, names mean the same model if they differ only in case or by ":latest".
constexpr bool is_same_model_name(std::string_view a, std::string_view b) {
  return equals_ignoring_case(without_latest(a), without_latest(b));
}

}  // namespace quire
