#include <algorithm>

#include "base/numbers.h"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/work.h"

namespace quire::cuda::native {
namespace {

constexpr int kMaxSplitQLen = 8;  // longer uniform queries fill the device without splits
constexpr int kBlocksAtOnce = 2;  // resident thread blocks per SM, by shared memory; kWide: 1
// In a merge through the L2, a thread block loads this many columns of all parts in one round. Up
// to this number of columns, an H200 merges as fast as in clusters, unless at most half of the SMs
// have a thread block. Both merges together take up to 12 % longer than the L2 alone.
constexpr int64_t kColumnsOfMerge = 512;
constexpr double kGoodFilling = 0.9;  // fraction of used slots in all waves that suffices; more
                                      // splits slow down the merge

int padded_dim(const AttentionShape& shape) {
  const int dim = std::max(shape.head_dim, shape.head_dim_v);
  return dim <= 64 ? 64 : dim <= 128 ? 128 : dim <= kMaxTileDim ? kMaxTileDim : kMaxWideDim;
}

int64_t rows_per_kv_head(const AttentionShape& shape, int q_len) {
  return int64_t{q_len} * shape.num_heads / shape.num_kv_heads;
}

// kRows64 merges its splits in one thread block, which takes long for many rows and splits. So it
// needs enough requests to fill the GPU with few splits.
constexpr int kRows64Splits = 4;

bool can_use_rows64(const AttentionShape& shape, int num_reqs, int q_len, const GpuTraits& gpu) {
  const int64_t most_blocks = int64_t{kRows64Splits} * num_reqs * shape.num_kv_heads;
  return gpu.has_wgmma && shape.kv == shape.q && padded_dim(shape) == kRows64Dim &&
         q_len <= kMaxSplitQLen && rows_per_kv_head(shape, q_len) <= kTileRows &&
         static_cast<double>(most_blocks) >= kGoodFilling * kBlocksAtOnce * gpu.num_sms;
}

// For more than 8 packed rows of wide heads.
KernelKind wide_kind(const GpuTraits& gpu) {
  return gpu.has_wgmma ? KernelKind::kWide : KernelKind::kGeneric;
}

KernelKind decode_kind(const AttentionShape& shape, int num_reqs, int q_len, const GpuTraits& gpu) {
  const int64_t rows = rows_per_kv_head(shape, q_len);
  if (has_few_rows(shape, q_len)) return KernelKind::kRows8;
  if (padded_dim(shape) > kMaxTileDim) return wide_kind(gpu);
  if (rows <= 16) return KernelKind::kRows16;
  return can_use_rows64(shape, num_reqs, q_len, gpu) ? KernelKind::kRows64 : KernelKind::kTile;
}

bool merges_splits(KernelKind kind) {
  return kind == KernelKind::kRows8 || kind == KernelKind::kRows64;
}

// The minimum number of positions of a split.
int min_split_tokens(const AttentionShape& shape, KernelKind kind) {
  if (kind == KernelKind::kWide) return kWideTokens;
  if (!merges_splits(kind)) return kMinSplitTokens;
  return kMinSplitKeyBytes / (padded_dim(shape) * static_cast<int>(dtype_bytes(shape.kv)));
}

struct Splits {
  int count = 1;
  int cluster = 1;  // splits per cluster
};

// Returns the splits per request and KV head if they are one cluster, with at most one thread block
// per SM; 1 if these splits are not short. One cluster needs no merge through the L2. On an H200 it
// is faster up to kShortSplit units of min_tokens per split. If the splits fill the SMs,
// kShortFullSplit units are the limit, because each of more splits would have half of an SM.
int one_cluster(int64_t num_blocks, int64_t num_units, int num_sms) {
  constexpr int64_t kShortSplit = 4;
  constexpr int64_t kShortFullSplit = 9;
  const int64_t size = std::min({num_sms / num_blocks, num_units, int64_t{kMaxCluster}});
  const bool is_short = num_units <= kShortSplit * size ||
                        num_units * num_sms <= kShortFullSplit * num_blocks * size * size;
  return is_short ? static_cast<int>(size) : 1;
}

// The fewest splits that fill the device's waves to kGoodFilling. If no number does, the number
// that fills them best.
int fill_waves(int64_t num_blocks, int limit, int64_t slots) {
  int best = 1;
  double best_filling = 0.0;
  for (int splits = 1; splits <= limit && best_filling < kGoodFilling; ++splits) {
    const int64_t blocks = num_blocks * splits;
    const double filling =
        static_cast<double>(blocks) / static_cast<double>(ceil_div(blocks, slots) * slots);
    if (filling <= best_filling) continue;
    best = splits;
    best_filling = filling;
  }
  return best;
}

// The largest clusters per request and KV head that run at once. An H200 runs 30 of 8 thread blocks
// instead of 33, because a cluster runs on one GPC.
int64_t num_large_clusters(int64_t num_blocks, int64_t num_units, int64_t slots) {
  constexpr int64_t kMost = 16;
  const auto at_once =
      static_cast<int64_t>(kGoodFilling * static_cast<double>(slots)) / kMaxCluster;
  return std::min({num_units / kMaxCluster, at_once / num_blocks, kMost});
}

// row_columns: columns of values of all rows of a thread block.
Splits choose_splits(int64_t num_blocks, int max_kv_len, int min_tokens, int most, bool in_clusters,
                     int64_t row_columns, int num_sms, int blocks_at_once) {
  const int64_t slots = int64_t{blocks_at_once} * num_sms;
  const int64_t num_units = ceil_div(int64_t{max_kv_len}, min_tokens);
  const int limit = static_cast<int>(std::clamp<int64_t>(num_units, 1, most));
  if (!in_clusters) return {fill_waves(num_blocks, limit, slots), 1};
  if (num_units <= kUnsplitUnits) return {};
  const bool has_few_columns = row_columns <= kColumnsOfMerge;
  // Clusters of two would merge more columns in several rounds, and a GPU that has few thread
  // blocks would wait for that. On an H200, three large clusters are faster than one, and two than
  // many small ones.
  const int64_t num_large =
      row_columns > 2 * kColumnsOfMerge ? num_large_clusters(num_blocks, num_units, slots) : 0;
  const Splits large = {static_cast<int>(num_large) * kMaxCluster, kMaxCluster};
  if (num_large > 2) return large;
  const int cluster = one_cluster(num_blocks, num_units, num_sms);
  if (cluster > 1 && (!has_few_columns || 2 * cluster * num_blocks <= num_sms)) {
    return {cluster, cluster};
  }
  if (num_large == 2) return large;
  // Only clusters of two fill all GPCs. A wave that is not full is slow, because SMs with two
  // thread blocks take longer than the others.
  int splits = fill_waves(num_blocks, limit, slots);
  if (has_few_columns) return {splits, 1};
  const auto in_one_wave = static_cast<int>(std::min<int64_t>(limit, slots / num_blocks) / 2 * 2);
  if (splits > 2 && splits < in_one_wave) splits = in_one_wave;
  return {splits, splits % 2 == 0 ? 2 : 1};
}

// Whether a ragged batch may gain from a plan of the clusters' work. It has none if each request is
// one large cluster.
bool can_share_work(const AttentionShape& shape, KernelKind kind, int num_reqs, int max_kv_len,
                    const Splits& splits) {
  constexpr int kFewUnits = 8;
  // max_shared_clusters() visits only the longest batch. Without this condition, a shorter batch
  // might share work while the longest batch does not, because its clusters are larger.
  static_assert(kFewUnits >= kMaxCluster);
  const bool is_one_cluster = splits.cluster > 2 && splits.cluster == splits.count;
  return merges_splits(kind) && num_reqs > 1 && !is_one_cluster &&
         max_kv_len > kFewUnits * min_split_tokens(shape, kind);
}

// An upper bound on the clusters with parts of split requests, if an even batch has one part per
// request.
int max_split_clusters(const AttentionShape& shape, const GpuTraits& gpu) {
  return 2 * ceil_div(kBlocksAtOnce * gpu.num_sms, shape.num_kv_heads);
}

int64_t num_partials(const AttentionShape& shape, int num_reqs, int num_parts, bool shares_work,
                     const GpuTraits& gpu) {
  if (num_parts > 1) return int64_t{num_reqs} * num_parts;
  return shares_work ? std::min(num_reqs, max_split_clusters(shape, gpu)) : 0;
}

Splits decode_splits(const AttentionShape& shape, int num_reqs, int q_len, int max_kv_len,
                     const GpuTraits& gpu) {
  if (q_len > kMaxSplitQLen || num_reqs == 0) return {};
  const int64_t rows = rows_per_kv_head(shape, q_len);
  const int64_t num_blocks = num_reqs * ceil_div(rows, kTileRows) * shape.num_kv_heads;
  const KernelKind kind = decode_kind(shape, num_reqs, q_len, gpu);
  if (kind == KernelKind::kGeneric) return {};
  const int most = kind == KernelKind::kRows64 ? kRows64Splits : kMaxSplits;
  return choose_splits(num_blocks, max_kv_len, min_split_tokens(shape, kind), most,
                       gpu.has_clusters && kind == KernelKind::kRows8, rows * shape.head_dim_v,
                       gpu.num_sms, kind == KernelKind::kWide ? 1 : kBlocksAtOnce);
}

bool is_16_byte_multiple(int64_t elements, DType dtype) {
  return elements * static_cast<int64_t>(dtype_bytes(dtype)) % 16 == 0;
}

}  // namespace

bool has_mma(const AttentionShape& shape) {
  if (shape.q != DType::kBF16 && shape.q != DType::kF16) return false;
  if (std::max(shape.head_dim, shape.head_dim_v) > kMaxWideDim) return false;
  return shape.kv == shape.q || shape.kv == DType::kF8E4M3;
}

bool has_few_rows(const AttentionShape& shape, int q_len) {
  return rows_per_kv_head(shape, q_len) <= 8;
}

bool is_aligned(const AttentionShape& shape, const AttentionCall& call) {
  const KvCacheView& kv = call.kv;
  for (const void* pointer :
       {static_cast<const void*>(kv.k), static_cast<const void*>(kv.v),
        static_cast<const void*>(call.q.data), static_cast<const void*>(call.out.data)}) {
    if (reinterpret_cast<uintptr_t>(pointer) % 16 != 0) return false;
  }
  for (const int64_t elements :
       {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k, kv.page_stride_v, kv.head_stride_v,
        kv.token_stride_v, int64_t{shape.head_dim}, int64_t{shape.head_dim_v}}) {
    if (!is_16_byte_multiple(elements, kv.dtype)) return false;
  }
  return true;
}

KernelChoice choose_kernel(const AttentionShape& shape, Phase phase, const PhaseRange& range,
                           bool aligned, const GpuTraits& gpu) {
  if (!aligned || !has_mma(shape)) return {};
  KernelChoice choice{.kind = KernelKind::kTile, .padded_dim = padded_dim(shape)};
  if (choice.padded_dim > kMaxTileDim) choice.kind = wide_kind(gpu);
  if (phase == Phase::kPrefill) return choice;
  const Splits splits =
      decode_splits(shape, range.num_reqs, range.max_q_len, range.max_kv_len, gpu);
  choice.num_splits = splits.count;
  choice.cluster = splits.cluster;
  choice.kind = decode_kind(shape, range.num_reqs, range.max_q_len, gpu);
  choice.shares_work = can_share_work(shape, choice.kind, range.num_reqs, range.max_kv_len, splits);
  choice.num_partials =
      num_partials(shape, range.num_reqs, choice.num_parts(), choice.shares_work, gpu);
  return choice;
}

size_t partial_bytes(const AttentionShape& shape, int q_len, int64_t num_partials) {
  return static_cast<size_t>(num_partials * q_len * shape.num_heads * (shape.head_dim_v + 2)) *
         sizeof(float);
}

namespace {

// Calls visit(num_reqs, q_len, splits, whether the batch may share work) with the batches of the
// longest contexts within the limits.
template <class Visit>
void visit_batches(const AttentionShape& shape, const PlanLimits& limits, const GpuTraits& gpu,
                   Visit visit) {
  const AttentionUse& use = limits.use;
  if (!has_mma(shape) || use.phase == Phase::kPrefill) return;
  const auto visit_batch = [&](int num_reqs, int q_len) {
    const Splits splits = decode_splits(shape, num_reqs, q_len, limits.max_kv_len, gpu);
    const KernelKind kind = decode_kind(shape, num_reqs, q_len, gpu);
    visit(num_reqs, q_len, splits,
          can_share_work(shape, kind, num_reqs, limits.max_kv_len, splits));
  };
  if (use.in_graph) return visit_batch(limits.max_num_reqs, use.q_len);
  for (int q_len = 1; q_len <= std::min(use.q_len, kMaxSplitQLen); ++q_len) {
    for (int num_reqs = 1; num_reqs <= limits.max_num_reqs; ++num_reqs) {
      if (int64_t{num_reqs} * q_len > limits.max_num_tokens) break;
      visit_batch(num_reqs, q_len);
    }
  }
}

// Shorter contexts have no more splits than the longest. If the longest context has one cluster, so
// have shorter contexts; otherwise each split may be a separate cluster.
int most_parts(const Splits& splits) {
  return splits.count == splits.cluster ? 1 : splits.count;
}

}  // namespace

size_t max_partial_bytes(const AttentionShape& shape, const PlanLimits& limits,
                         const GpuTraits& gpu) {
  size_t largest = 0;
  visit_batches(
      shape, limits, gpu, [&](int num_reqs, int q_len, const Splits& splits, bool shares) {
        const int64_t partials = num_partials(shape, num_reqs, most_parts(splits), shares, gpu);
        largest = std::max(largest, partial_bytes(shape, q_len, partials));
      });
  return largest;
}

int max_shared_clusters(const AttentionShape& shape, const PlanLimits& limits,
                        const GpuTraits& gpu) {
  int largest = 0;
  visit_batches(shape, limits, gpu,
                [&](int num_reqs, int /*q_len*/, const Splits& splits, bool shares) {
                  if (shares) largest = std::max(largest, num_reqs * most_parts(splits));
                });
  return largest;
}

WorkLimits work_limits(const AttentionShape& shape, const KernelChoice& choice, int num_reqs,
                       const GpuTraits& gpu) {
  const int num_parts = choice.num_parts();
  const int at_once = kBlocksAtOnce * gpu.num_sms / (shape.num_kv_heads * choice.cluster);
  return {.num_parts = num_parts,
          .clusters_at_once = std::max(1, at_once),
          .max_split = num_parts > 1 ? num_reqs * num_parts : max_split_clusters(shape, gpu),
          .extra_tokens = min_split_tokens(shape, choice.kind)};
}

}  // namespace quire::cuda::native
