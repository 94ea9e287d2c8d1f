#include <cuda_runtime.h>

#include "base/numbers.h"
#include "cuda/attention/cudnn/inputs.h"
#include "cuda/base/launch.h"

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

// One thread per request of the plan's size, plus one for the end offset of the last request.
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

constexpr unsigned kInputsBlock = 128;

}  // namespace

Result<const int32_t*> single_q_lens() {
  void* address = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetSymbolAddress(&address, q_lens));
  return static_cast<const QLens*>(address)->of;
}

void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, int kv_row_size, CudaStream& stream) {
  const LaunchShape shape{.grid = ceil_div(static_cast<unsigned>(num_reqs) + 1, kInputsBlock),
                          .block = kInputsBlock};
  QUIRE_LAUNCH(stream, prefill_inputs_kernel, shape, reqs, inputs, num_reqs, row_size, kv_row_size);
}

}  // namespace quire::cuda::cudnn
