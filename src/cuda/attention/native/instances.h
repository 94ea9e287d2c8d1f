// All instances of the tensor-core kernels: two query types, a cache of the same type or of FP8,
// and three padded head dimensions. Each query type is a file of its own, to compile side by side.
#pragma once

#include "cuda/attention/native/params.h"
#include "cuda/base/stream.h"

namespace quire::cuda::native {

// `padded_dim` is 64, 128 or 256. One of each for every query type.
struct MmaLaunchers {
  void (*rows16)(CudaStream& stream, const Params& params, DType kv, int padded_dim);
  void (*tile)(CudaStream& stream, const Params& params, DType kv, int padded_dim);
};
MmaLaunchers bf16_launchers();
MmaLaunchers f16_launchers();

void launch_generic(CudaStream& stream, const Params& params, DType kv);
// Makes rows of what the splits left.
void launch_merge(CudaStream& stream, const Params& params);

}  // namespace quire::cuda::native
