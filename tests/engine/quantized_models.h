// The embedded model with quantized weights, in files of the formats that engines load.
#pragma once

#include <string>
#include <vector>

#include "support/scratch_directory.h"

namespace quire::testing {

struct QuantizedModel {
  std::string name;  // of the format
  std::string path;  // for EngineConfig::model
};

// GGUF files with blocks of 8 and of 4 bits, and a checkpoint with integers of 4 bits in groups of
// 32. Two ranks divide their matrices without a cut block or group.
std::vector<QuantizedModel> write_quantized_models(const ScratchDirectory& directory);

}  // namespace quire::testing
