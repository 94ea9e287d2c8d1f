#include <cuda_runtime.h>

#include "cuda/attention/cudnn/padding.h"
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::cudnn {
namespace {

// Grid: thread blocks in y share a request's rows.
__global__ void zero_padding_kernel(const int32_t* seq_lens, const int32_t* query_start, char* out,
                                    int64_t row_bytes) {
  wait_for_previous_kernel();
  const auto req = static_cast<int>(blockIdx.x);
  if (seq_lens[req] != 0) return;
  const int64_t first_row = query_start == nullptr ? req : query_start[req] - query_start[0];
  const int64_t num_rows = query_start == nullptr ? 1 : query_start[req + 1] - query_start[req];
  auto* vecs = reinterpret_cast<uint4*>(out + first_row * row_bytes);
  const int64_t num_vecs = num_rows * row_bytes / static_cast<int64_t>(sizeof(uint4));
  for (int64_t i = blockIdx.y * blockDim.x + threadIdx.x; i < num_vecs;
       i += gridDim.y * blockDim.x) {
    vecs[i] = uint4{0, 0, 0, 0};
  }
}

constexpr unsigned kPaddingBlock = 128;
constexpr unsigned kBlocksPerRequest = 8;  // for prompts; a request of one row takes one

}  // namespace

void zero_padding(const int32_t* seq_lens, const int32_t* query_start, int num_reqs, void* out,
                  size_t row_bytes, CudaStream& stream) {
  const LaunchShape shape{
      .grid = {static_cast<unsigned>(num_reqs), query_start == nullptr ? 1 : kBlocksPerRequest},
      .block = kPaddingBlock,
      .overlap_start = true};
  QUIRE_LAUNCH(stream, zero_padding_kernel, shape, seq_lens, query_start, static_cast<char*>(out),
               static_cast<int64_t>(row_bytes));
}

}  // namespace quire::cuda::cudnn
