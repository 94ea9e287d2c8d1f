// The kernels of this backend, their parameters, and the choice among the kernels, which depends on
// a range's shape and never on current lengths.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "attn/backend.h"
#include "cuda/base/stream.h"
#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::native {

// The positions that a cluster of kRows8 or kRows64 computes for each KV head, in a ragged batch: a
// part of one request, and then whole requests.
struct alignas(16) ClusterWork {
  int32_t req = 0;  // of the phase
  uint16_t part = 0;
  uint16_t num_parts = 0;  // 0: the cluster has no work
  int32_t first_more = 0;  // index of the first whole request in Params::more_reqs
  int32_t num_more = 0;
};

// Params::cluster_shift if all splits of a request are one cluster whose size is no power of two.
inline constexpr int kOneCluster = 31;

// A row is one query token of one head. Rows of a request that share a KV head are packed token by
// token: packed row i is query token i / group and head kv_head * group + i % group.
struct Params {
  const void* q = nullptr;
  void* out = nullptr;
  const float* sinks = nullptr;  // null: none
  const void* k = nullptr;
  const void* v = nullptr;
  const float* k_scale = nullptr;  // null: 1
  const float* v_scale = nullptr;
  // In elements of the cache.
  int64_t page_stride_k = 0, head_stride_k = 0, token_stride_k = 0;
  int64_t page_stride_v = 0, head_stride_v = 0, token_stride_v = 0;

  const int32_t* query_start = nullptr;
  const int32_t* seq_lens = nullptr;
  const int32_t* settled_lens = nullptr;  // null: 0 for all
  const int32_t* block_table = nullptr;
  int64_t max_pages = 0;

  DType q_dtype = DType::kF32;  // also of out
  int first_req = 0;
  int num_reqs = 0;
  int first_token = 0;
  int num_tokens = 0;
  int num_heads = 0;
  int group = 1;  // query heads per KV head
  int head_dim = 0;
  int head_dim_v = 0;
  int page_shift = 4;  // log2 of the page size
  int window = 0;
  bool chunked = false;
  bool causal = true;
  float scale = 1.0F;
  float softcap = 0.0F;

  // With more than one split, a kernel writes partial results, [num_tokens * num_heads, num_splits]
  // rows, and the merge_splits kernel merges them. With kRows8, a cluster merges its splits in
  // shared memory. The last cluster to finish a request and KV head then merges the partial results
  // of all its clusters: [cluster of the grid, KV head, max_rows] rows. kRows64 is like kRows8,
  // without clusters.
  int num_splits = 1;
  int cluster = 1;                    // kRows8: splits per cluster, a divisor of num_splits
  int cluster_shift = 0;              // a split's index >> this is the index of its cluster
  int num_parts = 1;                  // num_splits / cluster
  int max_rows = 0;                   // packed rows of a request and KV head
  const ClusterWork* work = nullptr;  // kRows8, kRows64: [num_reqs * num_parts]; null: each
                                      // request has num_parts clusters
  const int32_t* more_reqs = nullptr;
  uint32_t* counters = nullptr;  // kRows8, kRows64: [num_reqs, num KV heads, kMaxCluster], zero
                                 // before and after a run
  float* partial_out = nullptr;  // [..., head_dim_v], not normalized
  float* partial_max = nullptr;  // of the logits, in log2 units; -infinity: no positions
  float* partial_sum = nullptr;
};

// The tensor-core kernels: F16 or BF16 queries, a cache of the same type or of FP8. `padded_dim` is
// 64, 128 or 256; for kRows8 also 512.
void launch_rows8(CudaStream& stream, const Params& params, DType kv, int padded_dim);
// Only for caches of the queries' type and a padded_dim of kRows64Dim, with wgmma.
void launch_rows64(CudaStream& stream, const Params& params);
void launch_rows16(CudaStream& stream, const Params& params, DType kv, int padded_dim);
void launch_tile(CudaStream& stream, const Params& params, DType kv, int padded_dim);
// For head dimensions up to kMaxWideDim, with wgmma.
Status launch_wide(CudaStream& stream, const Params& params, DType kv);
void launch_generic(CudaStream& stream, const Params& params, DType kv);
// Merges the splits' partial results into output rows.
void launch_merge(CudaStream& stream, const Params& params);

// The largest head dimensions: of all kernels (a latent cache of DeepSeek's dimension), of kRows8
// and kWide, and of the other tensor-core kernels, which need registers for all columns of their
// rows.
inline constexpr int kMaxDim = 576;
inline constexpr int kMaxWideDim = 512;
inline constexpr int kMaxTileDim = 256;

enum class KernelKind {
  kRows8,    // up to 8 packed rows per request and KV head; merges its splits itself
  kRows64,   // 17 to 64 packed rows of many requests, 16-bit caches of kRows64Dim columns, with
             // wgmma; merges its splits itself
  kRows16,   // up to 16 packed rows per request and KV head; each warp has its own positions
  kTile,     // tiles of 64 packed rows; all warps share the positions
  kWide,     // tiles of 64 packed rows of up to kMaxWideDim columns, with wgmma
  kGeneric,  // no tensor cores: F32, mixed dtypes, memory not aligned to 16 bytes, wide heads
             // without wgmma
};

struct KernelChoice {
  KernelKind kind = KernelKind::kGeneric;
  int padded_dim = 0;  // 64, 128, 256 or 512; unused by kGeneric
  int num_splits = 1;
  int cluster = 1;  // splits that a cluster merges
  bool shares_work =
      false;  // kRows8, kRows64: the clusters share the work of a ragged batch (work.h)
  int64_t num_partials = 0;  // parts of requests that may have partial results, over all requests

  int num_parts() const { return num_splits / cluster; }  // clusters per request
  int cluster_shift() const {
    const auto size = static_cast<unsigned>(cluster);
    return std::has_single_bit(size) ? std::countr_zero(size) : kOneCluster;
  }
};

// The properties of a GPU that the choice depends on.
struct GpuTraits {
  int num_sms = 0;
  bool has_clusters = false;
  bool has_wgmma = false;
};

inline constexpr int kTileRows = 64;
inline constexpr int kRows64Dim = 128;
inline constexpr int kMaxSplits = 64;
inline constexpr int kMaxCluster = 8;
inline constexpr int kMinSplitTokens = 64;
inline constexpr int kWideTokens = 128;  // positions that kWide processes at a time
// kRows8, kRows64: the keys of a split, and its values, take a multiple of this many bytes; only
// the last split may have less. Contexts of up to kUnsplitUnits times this size are not split,
// because the merge would take longer than the split saves.
inline constexpr int kMinSplitKeyBytes = 32 * 1024;
inline constexpr int kUnsplitUnits = 2;

// Whether a tensor-core kernel supports these dtypes and head dimensions. Above kMaxTileDim, these
// are kRows8 and, on Hopper, kWide.
bool has_mma(const AttentionShape& shape);
// Whether requests of q_len query tokens have at most 8 packed rows per KV head.
bool has_few_rows(const AttentionShape& shape, int q_len);
// Whether the call's memory can be copied in units of 16 bytes.
bool is_aligned(const AttentionShape& shape, const AttentionCall& call);

KernelChoice choose_kernel(const AttentionShape& shape, Phase phase, const PhaseRange& range,
                           bool aligned, const GpuTraits& gpu);

// Bytes of the partial results of this many parts of requests.
size_t partial_bytes(const AttentionShape& shape, int q_len, int64_t num_partials);
// An upper bound of partial_bytes() over all batches within the limits.
size_t max_partial_bytes(const AttentionShape& shape, const PlanLimits& limits,
                         const GpuTraits& gpu);
// An upper bound of the clusters per KV head over all batches within the limits whose clusters
// share work; 0 if there is no such batch.
int max_shared_clusters(const AttentionShape& shape, const PlanLimits& limits,
                        const GpuTraits& gpu);

}  // namespace quire::cuda::native
