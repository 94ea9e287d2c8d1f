#include "cpu/attention/simd_kernels.h"

#include <algorithm>
#include <type_traits>

#include "base/check.h"

// With Highway 1.0.3 on x86, this compiles four code paths only: the compiler's baseline, SSE4,
// AVX2 and AVX-512.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention/simd_kernels.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
//
#include "cpu/attention/simd_block-inl.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu::HWY_NAMESPACE {

// The part of a tile or block at position `at` that is visible to a query, as tokens [first, end)
// within it.
HWY_INLINE VisibleRange seen_part(const VisibleRange& visible, int at, int num_tokens) {
  return {std::max(visible.first - at, 0), std::min(visible.end - at, num_tokens)};
}

// Prefetches a block in software: pages are scattered, so the hardware prefetcher cannot predict
// the next block.
template <typename T>
HWY_INLINE void prefetch_block(const T* block, int64_t token_stride, int dim) {
  constexpr int kLine = 64 / static_cast<int>(sizeof(T));
  for (int token = 0; token < kBlockTokens; ++token, block += token_stride) {
    for (int i = 0; i < dim; i += kLine) hwy::Prefetch(block + i);
  }
}

// One tile of one task: 64 tokens at an absolute position.
template <typename T>
class Tile {
 public:
  // In an int8 cache, the kernel multiplies the integers unscaled. It applies the scales of keys to
  // the scores, and the scales of values to the softmax weights. A block of a latent cache is
  // scaled when it is converted.
  static constexpr bool kHasScales = std::is_same_v<T, int8_t>;  // one per key and value

  Tile(const AttentionTask& task, int position, const Partial& out)
      : task_(task), position_(position), out_(out) {}

  HWY_INLINE void attend() {
    for (int block = 0; block < kTileTokens; block += kBlockTokens) {
      if (seen_by_any(block)) score_block(block);
    }
    for (int query = 0; query < task_.num_queries; ++query) {
      const VisibleRange seen = seen_part(task_.visible[query], position_, kTileTokens);
      if (seen.first >= seen.end) continue;
      for (int head = 0; head < task_.group; ++head) update_row(query * task_.group + head, seen);
    }
    for (int block = 0; block < kTileTokens; block += kBlockTokens) {
      if (seen_by_any(block)) accumulate_block(block);
    }
  }

 private:
  bool seen_by_any(int block) const {
    const VisibleRange seen =
        seen_part({task_.first_position(), task_.end_position()}, position_ + block, kBlockTokens);
    return seen.first < seen.end;
  }
  float* scores(int row) const { return task_.scratch.scores + row * kTileTokens; }

  // A block never crosses a page boundary.
  HWY_INLINE const T* k_block(int block) const {
    return static_cast<const T*>(task_.kv.k) + page_of(block) * task_.kv.page_stride_k +
           first_offset(block) * task_.kv.token_stride_k;
  }
  HWY_INLINE const T* v_block(int block) const {
    return static_cast<const T*>(task_.kv.v) + page_of(block) * task_.kv.page_stride_v +
           first_offset(block) * task_.kv.token_stride_v;
  }
  int64_t page_of(int block) const { return task_.pages[(position_ + block) / task_.page_size]; }
  // The offset of the block's first token within its page.
  int first_offset(int block) const { return (position_ + block) % task_.page_size; }

  // The scales of the block's keys in an int8 cache.
  HWY_INLINE const float* k_scales(int block) const {
    const KvCacheView& kv = task_.kv;
    const int64_t at = page_of(block) * kv.page_stride_k + kv.scale_offset_k;
    return reinterpret_cast<const float*>(static_cast<const int8_t*>(kv.k) + at) +
           first_offset(block);
  }
  HWY_INLINE const float* v_scales(int block) const {
    const KvCacheView& kv = task_.kv;
    const int64_t at = page_of(block) * kv.page_stride_v + kv.scale_offset_v;
    return reinterpret_cast<const float*>(static_cast<const int8_t*>(kv.v) + at) +
           first_offset(block);
  }

  HWY_INLINE void score_block(int block) {
    const int64_t stride = task_.kv.token_stride_k;
    const T* k = k_block(block);
    prefetch_block(v_block(block), task_.kv.token_stride_v, task_.head_dim_v);
    if (reads_cache_directly(task_.head_dim)) return score_rows(block, k, stride);
    // Slots after the sequence's end may hold arbitrary data; update_row() masks their scores.
    load_block(k, stride, task_.head_dim, kBlockTokens, task_.scratch.block);
    if (kHasScales && task_.is_latent) {
      const float* scales = k_scales(block);
      scale_parts(scales, scales + task_.page_size, task_.head_dim_v,
                  static_cast<int>(pad_lanes(task_.head_dim)), task_.scratch.block);
    }
    score_rows(block, task_.scratch.block, pad_lanes(task_.head_dim));
  }

  template <typename K>
  HWY_INLINE void score_rows(int block, const K* k, int64_t stride) {
    const FloatTag d;
    const auto padded = static_cast<int>(pad_lanes(task_.head_dim));
    // One factor per token.
    HWY_ALIGN float factors[kBlockTokens];
    fill_score_factors(block, factors);
    for (int query = 0; query < task_.num_queries; ++query) {
      const VisibleRange seen = seen_part(task_.visible[query], position_ + block, kBlockTokens);
      if (seen.first >= seen.end) continue;
      for (int row = query * task_.group; row < (query + 1) * task_.group; ++row) {
        for (int i = 0; i < kBlockTokens; i += kLanes) {
          const Floats dots =
              dot_tokens(task_.scratch.q + row * padded, k + i * stride, stride, padded);
          hn::Store(hn::Mul(dots, hn::Load(d, factors + i)), d, scores(row) + block + i);
        }
      }
    }
  }

  // The factors that convert products with stored keys to scores. In a latent block, the keys have
  // already been scaled, because each key has two scales.
  HWY_INLINE void fill_score_factors(int block, float* factors) const {
    const FloatTag d;
    const Floats scale = hn::Set(d, task_.score_scale);
    const bool are_scaled = !kHasScales || task_.is_latent;
    for (int i = 0; i < kBlockTokens; i += kLanes) {
      const Floats factor = are_scaled ? scale : hn::Mul(scale, hn::LoadU(d, k_scales(block) + i));
      hn::Store(factor, d, factors + i);
    }
  }

  // Converts scores to weights relative to the row's new maximum, times the scales of the values.
  HWY_INLINE void update_row(int row, const VisibleRange& seen) {
    const FloatTag d;
    float* HWY_RESTRICT s = scores(row);
    // Skips vectors without a visible token, which would only add exact zeros.
    const int first = seen.first / kLanes * kLanes;
    Floats max_lanes = hn::Set(d, out_.max[row]);
    for (int i = first; i < seen.end; i += kLanes) {
      const Floats masked = mask(cap(hn::Load(d, s + i)), i, seen);
      max_lanes = hn::Max(max_lanes, masked);
      hn::Store(masked, d, s + i);
    }
    const float max = hn::GetLane(hn::MaxOfLanes(d, max_lanes));
    float* HWY_RESTRICT sums = task_.scratch.sums + row * kMaxLanes;
    if (max != out_.max[row]) {
      const float rescale = exp_scalar(out_.max[row] - max);
      const int64_t padded = pad_lanes(task_.head_dim_v);
      scale_by(rescale, padded, out_.acc + row * padded);
      scale_by(rescale, kLanes, sums);
      out_.max[row] = max;
    }
    // If every score so far is -inf, the weights are relative to 0, because -inf minus -inf is NaN.
    const Floats max_all = hn::Set(d, max == kMinusInf ? 0.0F : max);
    Floats sum = hn::Load(d, sums);
    for (int i = first; i < seen.end; i += kLanes) {
      const Floats score = hn::Sub(hn::Load(d, s + i), max_all);
      // hn::Exp() of a NaN is 0, which would hide an invalid key.
      const Floats weight = hn::IfThenElse(hn::IsNaN(score), score, hn::Exp(d, score));
      sum = hn::Add(sum, weight);
      hn::Store(times_v_scales(weight, i), d, s + i);
    }
    hn::Store(sum, d, sums);
  }

  // Returns the factors of the stored values: the weights of kLanes tokens from `idx` on, times the
  // scales of their values.
  HWY_INLINE Floats times_v_scales(Floats weights, int idx) const {
    if (!kHasScales) return weights;
    const int block = idx / kBlockTokens * kBlockTokens;
    return hn::Mul(weights, hn::LoadU(FloatTag(), v_scales(block) + idx % kBlockTokens));
  }

  HWY_INLINE Floats cap(Floats score) const {
    const FloatTag d;
    if (task_.softcap == 0.0F) return score;
    const Floats cap = hn::Set(d, task_.softcap);
    return hn::Mul(cap, hn::Tanh(d, hn::Div(score, cap)));
  }

  HWY_INLINE Floats mask(Floats score, int idx, const VisibleRange& seen) const {
    const FloatTag d;
    if (idx >= seen.first && idx + kLanes <= seen.end) return score;
    const Floats token = hn::Iota(d, static_cast<float>(idx));
    const auto inside = hn::And(hn::Ge(token, hn::Set(d, static_cast<float>(seen.first))),
                                hn::Lt(token, hn::Set(d, static_cast<float>(seen.end))));
    return hn::IfThenElse(inside, score, hn::Set(d, kMinusInf));
  }

  HWY_INLINE void accumulate_block(int block) {
    const int64_t stride = task_.kv.token_stride_v;
    const T* v = v_block(block);
    const int next = block + kTileTokens;
    if (seen_by_any(next)) prefetch_block(k_block(next), task_.kv.token_stride_k, task_.head_dim);
    if (reads_cache_directly(task_.head_dim_v)) return accumulate_rows(block, v, stride);
    load_block(v, stride, task_.head_dim_v, kBlockTokens, task_.scratch.block);
    accumulate_rows(block, task_.scratch.block, pad_lanes(task_.head_dim_v));
  }

  // Skips tokens that are not visible to a row instead of multiplying them by zero, because they
  // may hold NaN.
  template <typename V>
  HWY_INLINE void accumulate_rows(int block, const V* v, int64_t stride) {
    const auto padded = static_cast<int>(pad_lanes(task_.head_dim_v));
    for (int query = 0; query < task_.num_queries; ++query) {
      const VisibleRange seen = seen_part(task_.visible[query], position_ + block, kBlockTokens);
      if (seen.first >= seen.end) continue;
      for (int row = query * task_.group; row < (query + 1) * task_.group; ++row) {
        add_weighted_row(scores(row) + block, v, stride, seen.first, seen.end, padded,
                         out_.acc + row * padded);
      }
    }
  }

  // A single row converts the cache in registers; several rows share a converted block. F32 needs
  // no conversion. Keys of a latent int8 cache need a block, because they are scaled there.
  bool reads_cache_directly(int dim) const {
    if (kHasScales && task_.is_latent) return false;
    return dim % kMaxLanes == 0 && (std::is_same_v<T, float> || task_.num_rows() == 1);
  }

  const AttentionTask& task_;
  const int position_;
  const Partial& out_;
};

void copy_queries(const AttentionTask& task) {
  const auto padded = static_cast<int>(pad_lanes(task.head_dim));
  for (int query = 0; query < task.num_queries; ++query) {
    load_block(task.q + query * task.q_token_stride, task.head_dim, task.head_dim, task.group,
               task.scratch.q + query * task.group * padded);
  }
}

template <typename T>
void attend_positions(const AttentionTask& task, int first, int end, const Partial& out) {
  const FloatTag d;
  const int rows = task.num_rows();
  std::fill_n(out.max, rows, kMinusInf);
  std::fill_n(out.acc, rows * pad_lanes(task.head_dim_v), 0.0F);
  std::fill_n(task.scratch.sums, rows * kMaxLanes, 0.0F);
  for (int position = first / kTileTokens * kTileTokens; position < end; position += kTileTokens) {
    Tile<T>(task, position, out).attend();
  }
  for (int row = 0; row < rows; ++row) {
    out.sum[row] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, task.scratch.sums + row * kMaxLanes)));
  }
}

void attend(const AttentionTask& task, int partition, const Partial& out) {
  const int first = std::max(task.first_position(), partition * kPartitionTokens);
  const int end = std::min(task.end_position(), (partition + 1) * kPartitionTokens);
  switch (task.kv.dtype) {
    case DType::kF32:
      return attend_positions<float>(task, first, end, out);
    case DType::kF16:
      return attend_positions<hwy::float16_t>(task, first, end, out);
    case DType::kBF16:
      return attend_positions<hwy::bfloat16_t>(task, first, end, out);
    case DType::kF8E4M3:
      return attend_positions<Fp8>(task, first, end, out);
    case DType::kI8:
      return attend_positions<int8_t>(task, first, end, out);
    default:
      QUIRE_CHECK(false, "[attention] the cache has a type that supports() refuses");
  }
}

void fold(const AttentionTask& task, const Partial& from, const Partial& into) {
  const FloatTag d;
  const int64_t padded = pad_lanes(task.head_dim_v);
  for (int row = 0; row < task.num_rows(); ++row) {
    if (from.sum[row] == 0.0F) continue;
    if (into.sum[row] == 0.0F) {
      // Copies instead of adding to zero, so that a zero has the same sign as if the row were
      // computed alone.
      into.max[row] = from.max[row];
      into.sum[row] = from.sum[row];
      std::copy_n(from.acc + row * padded, padded, into.acc + row * padded);
      continue;
    }
    const float max = std::max(into.max[row], from.max[row]);
    const float keep = exp_scalar(into.max[row] - max);
    const float add = exp_scalar(from.max[row] - max);
    into.max[row] = max;
    into.sum[row] = into.sum[row] * keep + from.sum[row] * add;
    const Floats keep_lanes = hn::Set(d, keep);
    const Floats add_lanes = hn::Set(d, add);
    for (int64_t i = row * padded; i < (row + 1) * padded; i += kLanes) {
      const Floats kept = hn::Mul(hn::Load(d, into.acc + i), keep_lanes);
      hn::Store(hn::MulAdd(hn::Load(d, from.acc + i), add_lanes, kept), d, into.acc + i);
    }
  }
}

void write_row(const AttentionTask& task, const Partial& result, int row, float sink, float v_scale,
               float* out) {
  if (result.sum[row] == 0.0F) {
    std::fill_n(out, task.head_dim_v, 0.0F);
    return;
  }
  const float max = std::max(result.max[row], sink);
  const float keep = exp_scalar(result.max[row] - max);
  const float sum = result.sum[row] * keep + exp_scalar(sink - max);
  const float factor = keep * v_scale / sum;
  const float* acc = result.acc + row * pad_lanes(task.head_dim_v);
  for (int i = 0; i < task.head_dim_v; ++i) out[i] = acc[i] * factor;
}

void write_all(const AttentionTask& task, const Partial& result, const RowOutput& output) {
  for (int row = 0; row < task.num_rows(); ++row) {
    const int query = row / task.group;
    const int head = row % task.group;
    write_row(task, result, row, output.sinks == nullptr ? kMinusInf : output.sinks[head],
              output.v_scale,
              output.out + query * output.out_token_stride + head * int64_t{task.head_dim_v});
  }
}

}  // namespace quire::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(copy_queries);
HWY_EXPORT(attend);
HWY_EXPORT(fold);
HWY_EXPORT(write_all);

void load_queries(const AttentionTask& task) {
  HWY_DYNAMIC_DISPATCH(copy_queries)(task);
}

void attend_partition(const AttentionTask& task, int partition, const Partial& out) {
  HWY_DYNAMIC_DISPATCH(attend)(task, partition, out);
}

void fold_partial(const AttentionTask& task, const Partial& from, const Partial& into) {
  HWY_DYNAMIC_DISPATCH(fold)(task, from, into);
}

void write_rows(const AttentionTask& task, const Partial& result, const RowOutput& output) {
  HWY_DYNAMIC_DISPATCH(write_all)(task, result, output);
}

}  // namespace quire::cpu
#endif
