#include <cuda_runtime.h>

#include "cuda/attention/xqa/neutral.h"
#include "cuda/base/error.h"

namespace quire::cuda::xqa {
namespace {

struct Inputs {
  float one;
  float sinks[kMaxHeads];
};

// XQA starts a row's maximum at -1e5. A sink of that height adds exp(-1e5 - maximum) = 0 to the sum
// of a request, and 1 to the sum of a padded one, which so becomes 0/1 where it would be 0/0.
constexpr Inputs make_inputs() {
  Inputs inputs = {};
  inputs.one = 1.0F;
  for (float& sink : inputs.sinks) sink = -1e5F;
  return inputs;
}

__device__ Inputs inputs = make_inputs();

}  // namespace

Result<Neutral> neutral_inputs() {
  void* address = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetSymbolAddress(&address, inputs));
  const auto* on_device = static_cast<const Inputs*>(address);
  return Neutral{.one = &on_device->one, .sinks = on_device->sinks};
}

}  // namespace quire::cuda::xqa
