// Merges partial results and writes output rows.
#include <algorithm>

#include "cpu/attention/simd_row-inl.h"

#if defined(QUIRE_CPU_ATTENTION_SIMD_MERGE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QUIRE_CPU_ATTENTION_SIMD_MERGE_INL_H_
#undef QUIRE_CPU_ATTENTION_SIMD_MERGE_INL_H_
#else
#define QUIRE_CPU_ATTENTION_SIMD_MERGE_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace quire::cpu::HWY_NAMESPACE {

void fold(const AttentionTask& task, const Partial& from, const Partial& into) {
  const FloatTag d;
  const int64_t padded = pad_lanes(task.head_dim_v);
  for (int row = 0; row < task.num_rows(); ++row) {
    if (from.sum[row] == 0.0F) continue;
    if (into.sum[row] == 0.0F) {
      // A copy instead of an addition to zero, so that the sign of a zero is also the one that the
      // row alone would get.
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

#endif
