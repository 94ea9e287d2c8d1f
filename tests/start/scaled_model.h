// The embedded model with scales for an FP8 KV cache, and the log of an engine's start.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "quire/config.h"
#include "support/scratch_directory.h"

namespace quire::testing {

// The embedded model in a directory of its own, which is removed with this object. The embedded
// model is trained, so wrong scales harm its output as they harm any other model's.
class ScaledModel {
 public:
  // The scales of every layer's keys and values; 0: none. The values are 2^values_exponent times as
  // large as in the embedded model, and the output projection as much smaller. Only the first
  // `num_scaled` layers have scales.
  ScaledModel(float k_scale, float v_scale, float values_exponent = 0, int num_scaled = 1000);

  EngineConfig config(const std::string& kv_cache_dtype = "fp8") const;

 private:
  ScratchDirectory directory_;
};

struct Started {
  std::string log;
  std::string error;  // empty: the engine has started
};

// Starts an engine and stops it.
Started start(const EngineConfig& config);

// The number of occurrences of `part` in `text`.
size_t count(std::string_view text, std::string_view part);

}  // namespace quire::testing
