// FlashInfer's kernels for paged caches, compiled ahead of time for the shapes in CMakeLists.txt:
// FA2 for any GPU; FA3 for prefill on Hopper, over pages or over contiguous copies of them. This
// header has plain data only; only fa2_kernel.cuh and fa3_kernel.cu include FlashInfer's headers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "base/numbers.h"
#include "cuda/base/stream.h"
#include "tensor/dtype.h"

namespace quire::cuda::flashinfer_backend {

// kFa3 reads pages with cp.async; kFa3Gathered reads gathered copies (gather/) with TMA.
enum class KernelKind { kFa2, kFa3, kFa3Gathered };

constexpr bool is_fa3(KernelKind kernel) {
  return kernel != KernelKind::kFa2;
}

struct KernelKey {
  KernelKind kernel = KernelKind::kFa2;
  DType q = DType::kBF16;   // of the output too
  DType kv = DType::kBF16;  // as the kernel reads it: gathered copies have the queries' type
  int head_dim = 0;
  // Rows that a thread block processes at a time. FA2's 16, 64 or 128 rows are tokens packed with
  // the query heads of one KV head: row = token * group_size + head. FA3's rows are tokens of one
  // head.
  int tile_rows = 0;
  bool softcap = false;
  bool operator==(const KernelKey& other) const = default;
};

inline constexpr int kFa3TileTokens = 128;
// Positions of a context that FA3 reads at once; FlashInfer's choice of 96 is up to 8 % slower on
// an H200. TMA reads whole tiles, so a gathered context takes a whole number of tiles.
inline constexpr int kFa3TilePositions = 128;

// Positions that a thread block of FA2 reads at once. Contexts are split at multiples of this.
inline constexpr int kSplitUnit = 128;

// Arguments of a launch, with device pointers. The requests belong to one phase.
struct KernelCall {
  const void* q = nullptr;  // [all tokens, num_heads, head_dim]
  void* out = nullptr;      // [all tokens, num_heads, head_dim]; with chunks: [partial rows, ..]
  float* lse = nullptr;     // with chunks: [partial rows, num_heads], base 2; else null
  const void* k = nullptr;
  const void* v = nullptr;
  int64_t k_strides[3] = {};  // page, head, token, in elements
  int64_t v_strides[3] = {};
  const int32_t* query_start = nullptr;  // [num_reqs + 1]
  const int32_t* seq_lens = nullptr;     // [num_reqs]
  const int32_t* block_table = nullptr;  // [num_reqs, max_pages]
  const float* sinks = nullptr;          // [num_heads], or null
  const float* k_scale = nullptr;        // of an FP8 cache; null: 1
  const float* v_scale = nullptr;
  int num_tokens = 0;  // of all requests of the step, in both phases
  int num_reqs = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int page_size = 0;
  int window = 0;  // 0: all
  float scale = 1.0F;
  float softcap = 0.0F;

  // The plan (plan.h), on the device.
  int num_tiles = 0;
  int num_sms = 0;
  const int32_t* tile_req = nullptr;       // [num_tiles]
  const int32_t* tile_rows = nullptr;      // [num_tiles], index among the request's tiles
  const int32_t* tile_chunk = nullptr;     // [num_tiles], index among its chunks; FA2
  const int32_t* page_start = nullptr;     // [num_reqs + 1], first entry in block_table
  const int32_t* scratch_start = nullptr;  // [num_reqs], first position in gathered copies
  int scratch_tokens = 0;                  // capacity of the copies, which k and v point to
  const int32_t* partial_start = nullptr;  // [num_reqs], first partial row; equals query_start
                                           // without chunks
  const int32_t* chunk_tokens = nullptr;   // [1]
  const bool* tile_valid = nullptr;        // [num_tiles]; null: all true
  bool split = false;
};

using LaunchKernel = void (*)(const KernelCall& call, CudaStream& stream);

// Loads a kernel on the current device, which CUDA otherwise does at the first launch.
using LoadKernel = cudaError_t (*)();

struct KernelInstance {
  KernelKey key;
  LaunchKernel launch = nullptr;
  LoadKernel load = nullptr;  // of FA3
};

// Returns null if there is no such instance.
const KernelInstance* find_kernel(const KernelKey& key);

// Finds an instance among those of one source file.
const KernelInstance* fa2_BF16_BF16(const KernelKey& key);
const KernelInstance* fa2_F16_F16(const KernelKey& key);
const KernelInstance* fa2_BF16_F8E4M3(const KernelKey& key);
const KernelInstance* find_fa3(const KernelKey& key);

inline const KernelInstance* find_instance(
    std::initializer_list<std::span<const KernelInstance>> lists, const KernelKey& key) {
  for (const std::span<const KernelInstance> list : lists) {
    for (const KernelInstance& instance : list) {
      if (instance.key == key) return &instance;
    }
  }
  return nullptr;
}

constexpr float scale_or_one(const float* scale) {
  return scale != nullptr ? *scale : 1.0F;
}

// The number of chunks of a request. FlashInfer evaluates this rule on the device with the true
// length; chunks that are planned beyond the true length do nothing. `window` is
// KernelCall::window.
constexpr int64_t num_chunks(int64_t kv_len, int window, int tile_rows, int64_t chunk_tokens) {
  const int64_t all = kv_len > 1 ? kv_len : 1;
  const int64_t visible = int64_t{window} - 1 + tile_rows;
  const int64_t tokens = window > 0 && visible < all ? visible : all;
  return ceil_div(tokens, chunk_tokens);
}

// Arguments of the kernel that merges the chunks' partial results, with device pointers. The
// requests and tokens belong to one phase.
struct MergeCall {
  const void* partials = nullptr;      // [partial rows, num_heads, head_dim]
  const float* partial_lse = nullptr;  // [partial rows, num_heads], base 2
  void* out = nullptr;                 // [all tokens, num_heads, head_dim]
  const int32_t* query_start = nullptr;
  const int32_t* seq_lens = nullptr;
  const int32_t* partial_start = nullptr;
  const int32_t* chunk_tokens = nullptr;
  int first_token = 0;
  int num_tokens = 0;
  int num_reqs = 0;
  int num_heads = 0;
  int head_dim = 0;  // 64, 128 or 256
  int window = 0;
  int tile_rows = 0;
};

void launch_merge(const MergeCall& call, DType dtype, CudaStream& stream);

}  // namespace quire::cuda::flashinfer_backend
