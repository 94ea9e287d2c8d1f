// XQA, the decode kernel of TensorRT-LLM, as FlashInfer 0.6.18 ships it (Apache-2.0; mha.cu, the
// one of its two kernels that keeps queries and weights in 16 bits over an FP8 cache too). A block
// of threads takes 256 positions at a time of one request and KV head; where there are too few of
// those to fill the GPU a request is split, and the last of its blocks to finish merges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda/base/stream.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::xqa {

struct KernelCall {
  uint32_t num_reqs = 0;
  uint32_t num_kv_heads = 0;
  uint32_t num_splits = 1;
  uint32_t window = 0;             // last positions seen; UINT32_MAX: all
  float scale = 1.0F;              // multiplies q·k
  const float* k_scale = nullptr;  // device scalars, of an FP8 cache only; v_scale null: 1
  const float* v_scale = nullptr;
  const void* q = nullptr;       // [num_reqs, num_heads, head_dim]
  void* out = nullptr;           // like q
  const float* sinks = nullptr;  // [num_heads]
  void* k = nullptr;
  void* v = nullptr;
  uint32_t page_stride = 0;  // of k and of v, in units of head_dim elements
  uint32_t token_stride = 0;
  uint32_t head_stride = 0;
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  uint32_t max_pages = 0;
  const int32_t* seq_lens = nullptr;  // [num_reqs]
  uint32_t* counters = nullptr;       // [num_reqs, num_kv_heads], zero, and left zero
  void* scratch = nullptr;            // scratch_bytes()
};

// What a kernel is built for.
struct KernelKey {
  DType q = DType::kBF16;
  DType kv = DType::kBF16;
  int head_dim = 0;
  int group_size = 0;  // query heads a KV head
  int page_size = 0;
  bool operator==(const KernelKey&) const = default;
};

struct Kernel {
  KernelKey key;
  // Loads the kernel, once; outside of a capture.
  Status (*prepare)();
  void (*launch)(const KernelCall& call, CudaStream& stream);
};

// Null where there is none.
const Kernel* find_kernel(const KernelKey& key);

// Positions that a block of threads takes at a time: more splits than these have no work.
inline constexpr int kTokensPerBlock = 256;

// Of a call with so many partial results: requests times KV heads times splits.
size_t scratch_bytes(const KernelKey& key, size_t num_partials);

}  // namespace quire::cuda::xqa
