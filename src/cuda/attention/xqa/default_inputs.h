// Placeholder inputs on the device: XQA's kernel requires a scale and sinks even if there are none.
#pragma once

#include "quire/status.h"

namespace quire::cuda::xqa {

inline constexpr int kMaxHeads = 256;

struct DefaultInputs {
  const float* one = nullptr;    // a scale
  const float* sinks = nullptr;  // [kMaxHeads]
};

// Returns their addresses. The first call loads them and cannot be captured.
Result<DefaultInputs> default_inputs();

}  // namespace quire::cuda::xqa
