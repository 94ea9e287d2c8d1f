#include "start/model_key.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

#include "model/model_loader.h"
#include "model/weights.h"
#include "start/model_files.h"
#include "start/setting_values.h"

namespace quire {
namespace {

// The type of the weights; for a GGUF file, the types of its quantized matrices.
std::string weights_key(const EngineConfig& config, const ModelFiles& files) {
  const std::set<std::string_view> block_types = block_type_names(*files.weights);
  if (!block_types.empty()) return fmt::format("{}", fmt::join(block_types, "+"));
  if (files.config.format) return std::string(values_name(files.config.format->scheme));
  return std::string(dtype_name(weight_dtype(config, files.config.dtype)));
}

}  // namespace

std::string model_key(const EngineConfig& config, const ModelFiles& files) {
  const ModelConfig& model = files.config;
  return fmt::format("{} {}x{} {} {} {}", model.architecture, model.num_layers, model.hidden_size,
                     num_parameters(model), weights_key(config, files), config.cpu_activations);
}

}  // namespace quire
