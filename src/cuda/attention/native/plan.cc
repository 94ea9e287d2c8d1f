#include <algorithm>

#include "base/numbers.h"
#include "cuda/attention/native/kernels.h"

namespace quire::cuda::native {
namespace {

constexpr int kMaxSplitQLen = 8;      // longer uniform queries fill the device without splits
constexpr int kBlocksAtOnce = 2;      // resident thread blocks per SM, by shared memory
constexpr double kGoodFilling = 0.9;  // fraction of the waves' slots in use; more splits slow down
                                      // the merge

int padded_dim(const AttentionShape& shape) {
  const int dim = std::max(shape.head_dim, shape.head_dim_v);
  return dim <= 64 ? 64 : dim <= 128 ? 128 : 256;
}

KernelKind decode_kind(int64_t rows) {
  if (rows <= 8) return KernelKind::kRows8;
  return rows <= 16 ? KernelKind::kRows16 : KernelKind::kTile;
}

// The minimum number of positions of a split.
int min_split_tokens(const AttentionShape& shape, KernelKind kind) {
  if (kind != KernelKind::kRows8) return kMinSplitTokens;
  return kMinSplitKeyBytes / (padded_dim(shape) * static_cast<int>(dtype_bytes(shape.kv)));
}

// The fewest splits that fill the device's waves to kGoodFilling, or else the number that fills
// them best.
int choose_splits(int64_t num_blocks, int max_kv_len, int min_tokens, int num_sms) {
  const int64_t slots = int64_t{kBlocksAtOnce} * num_sms;
  const int limit = static_cast<int>(
      std::clamp<int64_t>(ceil_div(int64_t{max_kv_len}, min_tokens), 1, kMaxSplits));
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

int64_t rows_per_kv_head(const AttentionShape& shape, int q_len) {
  return int64_t{q_len} * shape.num_heads / shape.num_kv_heads;
}

int decode_splits(const AttentionShape& shape, int num_reqs, int q_len, int max_kv_len,
                  int num_sms) {
  if (q_len > kMaxSplitQLen) return 1;
  const int64_t rows = rows_per_kv_head(shape, q_len);
  const int64_t num_blocks = num_reqs * ceil_div(rows, kTileRows) * shape.num_kv_heads;
  return choose_splits(num_blocks, max_kv_len, min_split_tokens(shape, decode_kind(rows)), num_sms);
}

bool is_16_byte_multiple(int64_t elements, DType dtype) {
  return elements * static_cast<int64_t>(dtype_bytes(dtype)) % 16 == 0;
}

}  // namespace

bool has_mma(const AttentionShape& shape) {
  if (shape.q != DType::kBF16 && shape.q != DType::kF16) return false;
  if (shape.head_dim > kMaxDim || shape.head_dim_v > kMaxDim) return false;
  return shape.kv == shape.q || shape.kv == DType::kF8E4M3;
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
                           bool aligned, int num_sms) {
  if (!aligned || !has_mma(shape)) return {};
  KernelChoice choice{.kind = KernelKind::kTile, .padded_dim = padded_dim(shape)};
  if (phase == Phase::kPrefill) return choice;
  choice.num_splits =
      decode_splits(shape, range.num_reqs, range.max_q_len, range.max_kv_len, num_sms);
  choice.kind = decode_kind(rows_per_kv_head(shape, range.max_q_len));
  return choice;
}

size_t partial_bytes(const AttentionShape& shape, int64_t num_tokens, int num_splits) {
  if (num_splits == 1) return 0;
  return static_cast<size_t>(num_tokens * shape.num_heads * num_splits * (shape.head_dim_v + 2)) *
         sizeof(float);
}

size_t max_partial_bytes(const AttentionShape& shape, const PlanLimits& limits, int num_sms) {
  const AttentionUse& use = limits.use;
  if (!has_mma(shape) || use.phase == Phase::kPrefill) return 0;
  const auto bytes_of = [&](int num_reqs, int q_len) {
    const int splits = decode_splits(shape, num_reqs, q_len, limits.max_kv_len, num_sms);
    return partial_bytes(shape, int64_t{num_reqs} * q_len, splits);
  };
  if (use.in_graph) return bytes_of(limits.max_num_reqs, use.q_len);
  size_t largest = 0;
  for (int q_len = 1; q_len <= std::min(use.q_len, kMaxSplitQLen); ++q_len) {
    for (int num_reqs = 1; num_reqs <= limits.max_num_reqs; ++num_reqs) {
      if (int64_t{num_reqs} * q_len > limits.max_num_tokens) break;
      largest = std::max(largest, bytes_of(num_reqs, q_len));
    }
  }
  return largest;
}

}  // namespace quire::cuda::native
