#include <cuda_runtime.h>

#include "cuda/attention/cudnn/padding.h"
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

// The thread block zeroes num_bytes, a multiple of 16. With several blocks, each takes its share.
__device__ void zero_bytes(char* begin, int64_t num_bytes, unsigned block = 0,
                           unsigned num_blocks = 1) {
  auto* vecs = reinterpret_cast<uint4*>(begin);
  const int64_t num_vecs = num_bytes / static_cast<int64_t>(sizeof(uint4));
  for (int64_t i = block * blockDim.x + threadIdx.x; i < num_vecs; i += num_blocks * blockDim.x) {
    vecs[i] = uint4{0, 0, 0, 0};
  }
}

// One thread block per request.
__global__ void zero_padding_kernel(const int32_t* seq_lens, char* out, int64_t row_bytes) {
  wait_for_previous_kernel();
  if (seq_lens[blockIdx.x] == 0) zero_bytes(out + blockIdx.x * row_bytes, row_bytes);
}

// One thread block per request of the plan's size, which may be more than there are.
__global__ void prefill_inputs_kernel(PrefillRequests reqs, PrefillInputs inputs, int row_size) {
  const auto req = static_cast<int>(blockIdx.x);
  const auto num_reqs = static_cast<int>(gridDim.x);
  if (threadIdx.x == 0) {
    inputs.q_lens[req] = prefill_q_len(reqs, req);
    inputs.kv_lens[req] = prefill_kv_len(reqs, req);
    inputs.offsets[req] = prefill_offset(reqs, req, row_size);
    if (req == num_reqs - 1) {
      inputs.offsets[num_reqs] = prefill_offset(reqs, num_reqs, row_size);
    }
  }
  int32_t* row = inputs.block_table + req * inputs.table_stride;
  for (int64_t i = threadIdx.x; i < inputs.table_stride; i += blockDim.x) {
    row[i] = prefill_page(reqs, req, i);
  }
}

// One thread block per request and KV head.
__global__ void zero_unused_kernel(PrefillRequests reqs, CacheMemory cache, char* out,
                                   int64_t row_bytes) {
  wait_for_previous_kernel();
  const auto req = static_cast<int>(blockIdx.x);
  const int seq_len = reqs.seq_lens[req];
  if (seq_len == 0) {
    const int64_t first_token = reqs.query_start[req];
    zero_bytes(out + first_token * row_bytes, (reqs.query_start[req + 1] - first_token) * row_bytes,
               blockIdx.y, gridDim.y);
    return;
  }
  const UnusedSlots unused = unused_slots(seq_len, reqs.page_size);
  const int64_t page = reqs.block_table[req * reqs.max_pages + unused.page];
  const int64_t first_byte = page * cache.page_bytes + blockIdx.y * cache.head_bytes +
                             unused.first_slot * cache.token_bytes;
  const int64_t num_bytes = (reqs.page_size - unused.first_slot) * cache.token_bytes;
  zero_bytes(cache.k + first_byte, num_bytes);
  zero_bytes(cache.v + first_byte, num_bytes);
}

constexpr unsigned kBlock = 128;

}  // namespace

void zero_padding(const int32_t* seq_lens, int num_reqs, void* out, size_t row_bytes,
                  CudaStream& stream) {
  const LaunchShape shape{
      .grid = static_cast<unsigned>(num_reqs), .block = kBlock, .overlap_start = true};
  QUIRE_LAUNCH(stream, zero_padding_kernel, shape, seq_lens, static_cast<char*>(out),
               static_cast<int64_t>(row_bytes));
}

Result<const int32_t*> single_q_lens() {
  void* address = nullptr;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetSymbolAddress(&address, q_lens));
  return static_cast<const QLens*>(address)->of;
}

void derive_prefill_inputs(const PrefillRequests& reqs, const PrefillInputs& inputs, int num_reqs,
                           int row_size, CudaStream& stream) {
  const LaunchShape shape{.grid = static_cast<unsigned>(num_reqs), .block = kBlock};
  QUIRE_LAUNCH(stream, prefill_inputs_kernel, shape, reqs, inputs, row_size);
}

void zero_unused(const PrefillRequests& reqs, const CacheMemory& cache, int num_kv_heads, void* out,
                 size_t row_bytes, CudaStream& stream) {
  const LaunchShape shape{
      .grid = {static_cast<unsigned>(reqs.num_reqs), static_cast<unsigned>(num_kv_heads)},
      .block = kBlock,
      .overlap_start = true};
  QUIRE_LAUNCH(stream, zero_unused_kernel, shape, reqs, cache, static_cast<char*>(out),
               static_cast<int64_t>(row_bytes));
}

}  // namespace quire::cuda::cudnn
