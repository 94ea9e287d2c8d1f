#include "cpu/attention/simd_kernels.h"

#include <algorithm>

#include "base/check.h"

// Compiles four code paths only: the compiler's baseline, SSE4, AVX2 and AVX-512.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/attention/simd_kernels.cc"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"
//
#include "cpu/attention/simd_load-inl.h"
#include "cpu/attention/simd_merge-inl.h"
#include "cpu/attention/simd_row-inl.h"
#include "cpu/attention/simd_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::cpu::HWY_NAMESPACE {

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
    default:
      QUIRE_CHECK(false, "supports() refuses integer caches");
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
