// The model in the binary, and its drafters (models/).
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "hub/cache/model_cache.h"

namespace quire {

// Whether EngineConfig::model means the embedded model.
inline bool is_embedded(std::string_view model) {
  return model.empty() || model == hub::kEmbeddedModel;
}

struct EmbeddedModel {
  std::string_view name;
  std::string_view config_json;
  std::string_view generation_config_json;
  std::string_view tokenizer_json;
  std::string_view tokenizer_config_json;
  std::span<const std::byte> weights;  // a GGUF file, page-aligned
};

const EmbeddedModel& embedded_model();

// A drafter of the embedded model.
struct EmbeddedDrafter {
  std::string_view method;  // of `speculative_config`
  std::string_view config_json;
  std::span<const std::byte> weights;  // a safetensors file, page-aligned
};
// Empty if the embedded model has no drafters.
std::span<const EmbeddedDrafter> embedded_drafters();

}  // namespace quire
