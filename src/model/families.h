// The table of model families: a row per architecture. Adding a family adds a folder and a row.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_fields.h"
#include "model/model.h"
#include "model/weights.h"

namespace quire {

struct ModelFamily {
  std::string_view architecture;  // in config.json's "architectures"
  // Reads the family's own fields, and those of ModelConfig that follow from them. Faults are kept
  // in the fields' status.
  std::shared_ptr<const FamilyConfig> (*parse)(ConfigFields& fields, ModelConfig& config);
  // The checkpoint's tensors.
  std::vector<TensorSpec> (*tensors)(const ModelConfig& config);
  // One rank's layers by the shape of their attention; queries and outputs are `activation`.
  std::vector<KvGroup> (*kv_groups)(const ModelConfig& config, const ModelLimits& limits,
                                    DType activation);
  // The buffers of one step within the limits.
  int64_t (*activation_bytes)(const ModelConfig& config, const ModelLimits& limits,
                              DType activation);
  Result<std::unique_ptr<Model>> (*load)(const ModelConfig& config, WeightSource& source, Ops& ops,
                                         const ModelLimits& limits, const LoadProgress& progress);
};

// Null: not supported.
const ModelFamily* find_family(std::string_view architecture);
// Takes a configuration that parse_model_config has accepted.
const ModelFamily& family_of(const ModelConfig& config);
// "LlamaForCausalLM, MistralForCausalLM, …"
std::string supported_architectures();

}  // namespace quire
