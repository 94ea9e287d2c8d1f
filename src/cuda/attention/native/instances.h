// All instances of the tensor-core kernels: two query types, a cache of the same type or of FP8,
// and three padded head dimensions. Each query type has its own source file, so that they compile
// in parallel.
#pragma once

#include "cuda/attention/native/params.h"
#include "cuda/base/stream.h"

namespace quire::cuda::native {

// Launch functions of one query type. `padded_dim` is 64, 128 or 256.
struct MmaLaunchers {
  void (*rows16)(CudaStream& stream, const Params& params, DType kv, int padded_dim);
  void (*tile)(CudaStream& stream, const Params& params, DType kv, int padded_dim);
};
MmaLaunchers bf16_launchers();
MmaLaunchers f16_launchers();

void launch_generic(CudaStream& stream, const Params& params, DType kv);
// Merges the splits' partial results into output rows.
void launch_merge(CudaStream& stream, const Params& params);

}  // namespace quire::cuda::native
