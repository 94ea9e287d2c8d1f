// The model embedded in the binary. The project trained it, so that the engine runs a real model
// without any download.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace quire {

struct EmbeddedModel {
  std::string_view name;
  std::string_view config_json;
  std::string_view generation_config_json;
  std::string_view tokenizer_json;
  std::string_view tokenizer_config_json;
  std::span<const std::byte> weights;  // a safetensors file, page-aligned
};

const EmbeddedModel& embedded_model();

}  // namespace quire
