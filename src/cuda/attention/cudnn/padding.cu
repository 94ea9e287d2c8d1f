#include <cuda_runtime.h>

#include "base/numbers.h"
#include "cuda/attention/cudnn/padding.h"
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

// One thread per request of the plan's size, and one for the end of the last.
__global__ void prefill_inputs_kernel(PrefillRequests reqs, PrefillInputs inputs, int num_reqs,
                                      int row_size, int kv_row_size) {
  const auto req = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (req > num_reqs) return;
  const int32_t start = scratch_start(reqs, req);
  inputs.q_offsets[req] = prefill_token(reqs, req) * row_size;
  inputs.kv_offsets[req] = start * kv_row_size;
  if (req < reqs.num_reqs) inputs.scratch_start[req] = start;
  if (req == num_reqs) return;
  inputs.q_lens[req] = prefill_q_len(reqs, req);
  inputs.kv_lens[req] = prefill_kv_len(reqs, req);
}

constexpr unsigned kBlock = 128;
constexpr unsigned kBlocksPerRequest = 8;  // of zeroed prompts

}  // namespace

void zero_padding(const int32_t* seq_lens, const int32_t* query_start, int num_reqs, void* out,
                  size_t row_bytes, CudaStream& stream) {
  const LaunchShape shape{
      .grid = {static_cast<unsigned>(num_reqs), query_start == nullptr ? 1 : kBlocksPerRequest},
      .block = kBlock,
      .overlap_start = true};
  QUIRE_LAUNCH(stream, zero_padding_kernel, shape, seq_lens, query_start, static_cast<char*>(out),
               static_cast<int64_t>(row_bytes));
}

Result<const int32_t*> single_q_lens() {
  void* address = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetSymbolAddress(&address, q_lens));
  return static_cast<const QLens*>(address)->of;
}

void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, int kv_row_size, CudaStream& stream) {
  const LaunchShape shape{.grid = ceil_div(static_cast<unsigned>(num_reqs) + 1, kBlock),
                          .block = kBlock};
  QUIRE_LAUNCH(stream, prefill_inputs_kernel, shape, reqs, inputs, num_reqs, row_size, kv_row_size);
}

}  // namespace quire::cuda::cudnn
