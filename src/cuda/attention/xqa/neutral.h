// Inputs that stand for "none" on the device, where XQA's kernel wants a pointer.
#pragma once

#include "quire/status.h"

namespace quire::cuda::xqa {

inline constexpr int kMaxHeads = 256;

struct Neutral {
  const float* one = nullptr;    // a scale
  const float* sinks = nullptr;  // [kMaxHeads]
};

// Loads them; outside of a capture.
Result<Neutral> neutral_inputs();

}  // namespace quire::cuda::xqa
