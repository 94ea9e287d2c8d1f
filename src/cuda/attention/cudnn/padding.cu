#include <cuda_runtime.h>

#include "cuda/attention/cudnn/sdpa.h"
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::cudnn {
namespace {

struct QLens {
  int32_t of[kMaxReqs];
};

constexpr QLens make_q_lens() {
  QLens lens = {};
  for (int32_t& len : lens.of) len = 1;
  return lens;
}

__device__ QLens q_lens = make_q_lens();

// One thread block per request.
__global__ void zero_padding_kernel(const int32_t* seq_lens, uint4* out, size_t row_vecs) {
  wait_for_previous_kernel();
  if (seq_lens[blockIdx.x] != 0) return;
  uint4* row = out + blockIdx.x * row_vecs;
  for (size_t i = threadIdx.x; i < row_vecs; i += blockDim.x) row[i] = uint4{0, 0, 0, 0};
}

}  // namespace

void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream) {
  const LaunchShape shape{
      .grid = static_cast<unsigned>(num_reqs), .block = 128, .overlap_start = true};
  QUIRE_LAUNCH(stream, zero_padding_kernel, shape, seq_lens, static_cast<uint4*>(out),
               row_bytes / sizeof(uint4));
}

Result<const int32_t*> single_q_lens() {
  void* address = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetSymbolAddress(&address, q_lens));
  return static_cast<const QLens*>(address)->of;
}

}  // namespace quire::cuda::cudnn
