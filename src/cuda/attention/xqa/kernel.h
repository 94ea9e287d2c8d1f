// XQA, the decode kernels of TensorRT-LLM, as FlashInfer 0.6.18 ships them (Apache-2.0). A 16-bit
// cache uses the Hopper kernel (mha_sm90.cu: bulk copies and wgmma, tiles of 64 positions). An FP8
// cache uses the other kernel (mha.cu: tiles of 256 positions), because the Hopper kernel would
// round queries and attention weights to FP8 too. If requests and KV heads are too few to fill the
// GPU, requests are split; the last thread block of a request merges the results.
//
// Several query tokens, as in the verification of drafts, need separate instances of the Hopper
// kernel (XQA's SPEC_DEC). These pack the heads of all tokens into one tile of up to 32 rows. Each
// token attends to itself and to the tokens before it. These instances ignore windows.
//
// All instances include this header. It is C++17 without the standard library, which nvcc compiles
// more slowly than the kernel.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace quire {
enum class DType : uint8_t;
namespace cuda {
class CudaStream;
}
}  // namespace quire

namespace quire::cuda::xqa {

struct KernelCall {
  uint32_t num_reqs = 0;
  uint32_t num_kv_heads = 0;
  uint32_t num_splits = 1;
  uint32_t q_len = 1;              // query tokens of every request, at most Instance::max_q_len
  uint32_t window = 0;             // number of last positions to attend to; UINT32_MAX: all
  float scale = 1.0F;              // multiplies q·k
  const float* k_scale = nullptr;  // device scalars, of an FP8 cache only; v_scale null: 1
  const float* v_scale = nullptr;
  const void* q = nullptr;       // [num_reqs, q_len, num_heads, head_dim]
  void* out = nullptr;           // like q
  const float* sinks = nullptr;  // [num_heads]
  void* k = nullptr;
  void* v = nullptr;
  uint32_t page_stride = 0;  // of k and of v, in units of head_dim elements
  uint32_t token_stride = 0;
  uint32_t head_stride = 0;
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  uint32_t max_pages = 0;
  const int32_t* seq_lens = nullptr;   // [num_reqs]
  uint32_t* counters = nullptr;        // [num_reqs, num_kv_heads], zero before and after a run
  void* scratch = nullptr;             // scratch_bytes()
  size_t shared_bytes = 0;             // dynamic shared memory per thread block
  bool overlap_start = false;          // programmatic dependent launch
  const CUtensorMap* k_map = nullptr;  // Hopper kernel: k and v as [page, token, head, head_dim]
  const CUtensorMap* v_map = nullptr;
};

// An instance of the kernel, as its source file defines it.
struct Instance {
  const void* shared_bytes;  // variable on the device: uint32_t, KernelCall::shared_bytes
  uint32_t box_elems;        // Hopper kernel: elements of a row that one bulk copy transfers
  int max_q_len;             // query tokens per request that its tile holds
  void (*launch)(const KernelCall& call, CudaStream& stream);
};

// Enqueues a kernel with the call's shared memory. Instances call it.
void enqueue(CudaStream& stream, const KernelCall& call, const void* kernel, dim3 grid, dim3 block,
             void** args);

// The properties of the batches that a kernel must serve.
struct KernelKey {
  DType q{};
  DType kv{};
  int head_dim = 0;
  int group_size = 0;  // query heads per KV head
  int page_size = 0;
  int q_len = 1;  // upper bound of the query tokens per request
};

// Returns the kernel with the smallest tile that holds q_len tokens, or null.
const Instance* find_kernel(const KernelKey& key);

// Returns the maximum number of query tokens among the kernels with the key's other properties, or
// 0 if there is none.
int max_q_len(const KernelKey& key);

// Positions that a thread block processes at a time. Splits beyond the number of tiles would be
// idle.
inline constexpr int kHopperTileTokens = 64;
inline constexpr int kTileTokens = 256;
inline bool is_hopper_kernel(const KernelKey& key) {
  return key.kv == key.q;
}

inline constexpr int kMaxHeads = 256;

// Placeholders on the device. The kernel requires a scale and sinks, even if the call has none.
struct DefaultInputs {
  const float* one = nullptr;    // a scale
  const float* sinks = nullptr;  // [kMaxHeads]
};

// Returns their addresses. The first call loads them and cannot be captured.
cudaError_t find_default_inputs(DefaultInputs* inputs);

}  // namespace quire::cuda::xqa
