// GEMM with F32 fused multiply-adds, through Highway.
//
// Numerics: out[t, n] = (((x[t, 0] w[n, 0]) + x[t, 1] w[n, 1]) + …) + bias[n], with k ascending and
// one fused multiply-add per step (a product and a sum on targets without it). Lanes are output
// features, so the order does not depend on the number of rows, blocks or threads; between blocks
// of k the sums are stored as F32, exactly.
//
// Work: a task is kBlockPanels panels by at most kBlockRows rows. For few rows, weights are
// converted in registers while they stream by, once. For many rows, a block of weights is converted
// to F32 in L2 once and then used by every group of rows.
#include "cpu/ops/gemm_fma.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/ops/gemm_fma.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A panel is a whole number of vectors.
using D = hn::CappedTag<float, kPanelWidth>;
using V = hn::Vec<D>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kVecs = static_cast<int>(kPanelWidth) / kLanes;  // vectors per panel row

// Rows and panels whose sums fit into the register file together with the operands.
#if HWY_TARGET == HWY_AVX3
constexpr int kRows = 6;
constexpr int kWidePanels = 2;
#elif HWY_TARGET == HWY_AVX2
constexpr int kRows = 3;
constexpr int kWidePanels = 1;
#else
constexpr int kRows = 1;
constexpr int kWidePanels = 1;
#endif

// Readers load vector `v` of the features at depth k as F32; kOdd says whether k is odd.
struct ReadF32 {
  using T = float;
  template <bool kOdd>
  static HWY_INLINE V load(const T* panel, int64_t k, int v) {
    return hn::Load(D(), panel + k * kPanelWidth + v * kLanes);
  }
};

struct ReadF16 {
  using T = hwy::float16_t;
  template <bool kOdd>
  static HWY_INLINE V load(const T* panel, int64_t k, int v) {
#if HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
    // Highway's own conversion turns infinity into 65536 on targets without an instruction for it.
    const hn::RebindToUnsigned<D> du;
    const auto* at = reinterpret_cast<const uint16_t*>(panel) + k * kPanelWidth + v * kLanes;
    const auto bits = hn::PromoteTo(du, hn::Load(hn::Rebind<uint16_t, D>(), at));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000U)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFU)));
    const auto finite =
        hn::BitCast(du, hn::Mul(hn::BitCast(D(), magnitude), hn::Set(D(), 0x1p112F)));
    const auto special = hn::Or(magnitude, hn::Set(du, 0x7F800000U));
    const auto is_finite = hn::Lt(magnitude, hn::Set(du, 0x0F800000U));
    return hn::BitCast(D(), hn::Or(sign, hn::IfThenElse(is_finite, finite, special)));
#else
    const hn::Rebind<hwy::float16_t, D> dh;
    return hn::PromoteTo(D(), hn::Load(dh, panel + k * kPanelWidth + v * kLanes));
#endif
  }
};

struct ReadBf16Pairs {
  using T = uint16_t;
  template <bool kOdd>
  static HWY_INLINE V load(const T* panel, int64_t k, int v) {
    const hn::RebindToUnsigned<D> du;
    const T* pairs = panel + (k - kOdd) * kPanelWidth + 2 * v * kLanes;
    const auto both = hn::Load(du, reinterpret_cast<const uint32_t*>(pairs));
    return hn::BitCast(D(),
                       kOdd ? hn::And(both, hn::Set(du, 0xFFFF0000U)) : hn::ShiftLeft<16>(both));
  }
};

// A block of a task's weights; `panel_stride` is the number of elements between panels.
template <typename T>
struct Weights {
  const T* panels;
  int64_t panel_stride;
};

// sums[r, :] (+)= x[r, 0 … num_k) · weights, for kR rows and kP panels held in registers.
template <class Reader, int kR, int kP>
void multiply(Weights<typename Reader::T> w, const float* HWY_RESTRICT x, int64_t x_stride,
              int64_t num_k, bool first, float* HWY_RESTRICT sums, int64_t sums_stride) {
  constexpr int kN = kP * kVecs;
  const D d;
  V acc[kR][kN];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) {
      acc[r][n] = first ? hn::Zero(d) : hn::Load(d, sums + r * sums_stride + n * kLanes);
    }
  }
  const auto step = [&](auto odd, int64_t k) HWY_ATTR {
    V weights[kN];
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) {
      const auto* panel = w.panels + (n / kVecs) * w.panel_stride;
      weights[n] = Reader::template load<odd.value>(panel, k, n % kVecs);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const V x_k = hn::Set(d, x[r * x_stride + k]);
#pragma GCC unroll 64
      for (int n = 0; n < kN; ++n) acc[r][n] = hn::MulAdd(weights[n], x_k, acc[r][n]);
    }
  };
  for (int64_t k = 0; k + 1 < num_k; k += 2) {
    step(std::false_type(), k);
    step(std::true_type(), k + 1);
  }
  if (num_k % 2 != 0) step(std::false_type(), num_k - 1);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) hn::Store(acc[r][n], d, sums + r * sums_stride + n * kLanes);
  }
}

// Calls multiply() for `rows`, known only at run time, from 1 to kR.
template <class Reader, int kP, int kR = kRows>
void multiply_group(Weights<typename Reader::T> w, const float* x, int64_t x_stride, int64_t rows,
                    int64_t num_k, bool first, float* sums, int64_t sums_stride) {
  if constexpr (kR > 1) {
    if (rows < kR) {
      return multiply_group<Reader, kP, kR - 1>(w, x, x_stride, rows, num_k, first, sums,
                                                sums_stride);
    }
  }
  multiply<Reader, kR, kP>(w, x, x_stride, num_k, first, sums, sums_stride);
}

// Multiplies all rows of a task with one block of weights, in groups of nearly equal size.
template <class Reader, int kP>
void multiply_rows(Weights<typename Reader::T> w, const float* x, int64_t x_stride,
                   int64_t num_rows, int64_t num_k, bool first, float* sums, int64_t sums_stride) {
  int64_t num_groups = ceil_div(num_rows, kRows);
  for (int64_t row = 0; row < num_rows; --num_groups) {
    const int64_t rows = ceil_div(num_rows - row, num_groups);
    multiply_group<Reader, kP>(w, x + row * x_stride, x_stride, rows, num_k, first,
                               sums + row * sums_stride, sums_stride);
    row += rows;
  }
}

template <class Reader>
void multiply_panels(Weights<typename Reader::T> w, int64_t num_panels, const float* x,
                     int64_t x_stride, int64_t num_rows, int64_t num_k, bool first, float* sums) {
  constexpr int64_t kStride = kBlockPanels * kPanelWidth;
  int64_t p = 0;
  const auto at = [&] {
    return Weights<typename Reader::T>{w.panels + p * w.panel_stride, w.panel_stride};
  };
  for (; p + kWidePanels <= num_panels; p += kWidePanels) {
    multiply_rows<Reader, kWidePanels>(at(), x, x_stride, num_rows, num_k, first,
                                       sums + p * kPanelWidth, kStride);
  }
  for (; p < num_panels; ++p) {
    multiply_rows<Reader, 1>(at(), x, x_stride, num_rows, num_k, first, sums + p * kPanelWidth,
                             kStride);
  }
}

// Converts a block to scratch[panel][k][32] as F32. num_k is even: the padding is also converted.
template <class Reader>
void convert_block(Weights<typename Reader::T> w, int64_t num_panels, int64_t num_k,
                   float* HWY_RESTRICT scratch) {
  const D d;
  for (int64_t p = 0; p < num_panels; ++p) {
    float* out = scratch + p * num_k * kPanelWidth;
    for (int64_t k = 0; k < num_k; k += 2) {
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) {
        const auto* panel = w.panels + p * w.panel_stride;
        float* at = out + k * kPanelWidth + v * kLanes;
        hn::Store(Reader::template load<false>(panel, k, v), d, at);
        hn::Store(Reader::template load<true>(panel, k + 1, v), d, at + kPanelWidth);
      }
    }
  }
}

template <class Reader>
void run_task(const FmaTask& task) {
  using T = typename Reader::T;
  const auto* panels = reinterpret_cast<const T*>(task.panels);
  const int64_t panel_stride = task.padded_k * kPanelWidth;
  if (task.num_rows <= kRows) {
    multiply_panels<Reader>({panels, panel_stride}, task.num_panels, task.x, task.num_k,
                            task.num_rows, task.num_k, true, task.sums);
    return;
  }
  for (int64_t k = 0; k < task.num_k; k += kBlockK) {
    Weights<float> block = {reinterpret_cast<const float*>(panels + k * kPanelWidth), panel_stride};
    if constexpr (!std::is_same_v<T, float>) {
      const int64_t padded = std::min(kBlockK, task.padded_k - k);
      convert_block<Reader>({panels + k * kPanelWidth, panel_stride}, task.num_panels, padded,
                            task.weights_scratch);
      block = {task.weights_scratch, padded * kPanelWidth};
    }
    multiply_panels<ReadF32>(block, task.num_panels, task.x + k, task.num_k, task.num_rows,
                             std::min(kBlockK, task.num_k - k), k == 0, task.sums);
  }
}

void run_f32(const FmaTask& task) {
  run_task<ReadF32>(task);
}
void run_f16(const FmaTask& task) {
  run_task<ReadF16>(task);
}
void run_bf16(const FmaTask& task) {
  run_task<ReadBf16Pairs>(task);
}

}  // namespace HWY_NAMESPACE
}  // namespace quire::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire::cpu {

HWY_EXPORT(run_f32);
HWY_EXPORT(run_f16);
HWY_EXPORT(run_bf16);

namespace {

constexpr int64_t kWeightsFloats = kBlockK * kBlockPanels * kPanelWidth;
constexpr int64_t kSumsFloats = kBlockRows * kBlockPanels * kPanelWidth;

void run_task(DType dtype, const FmaTask& task) {
  switch (dtype) {
    case DType::kF16:
      return HWY_DYNAMIC_DISPATCH(run_f16)(task);
    case DType::kBF16:
      return HWY_DYNAMIC_DISPATCH(run_bf16)(task);
    default:
      return HWY_DYNAMIC_DISPATCH(run_f32)(task);
  }
}

// out[r, first_feature + i] = sums[r, i] + bias[i], for the features that exist.
void write_rows(const PackedLinear& w, const float* sums, int64_t num_rows, int64_t first_feature,
                float* out) {
  const int64_t count = std::min(kBlockPanels * kPanelWidth, w.out_features() - first_feature);
  for (int64_t r = 0; r < num_rows; ++r) {
    float* row = out + r * w.out_features() + first_feature;
    std::copy_n(sums + r * kBlockPanels * kPanelWidth, count, row);
    if (w.bias() == nullptr) continue;
    for (int64_t i = 0; i < count; ++i) row[i] += w.bias()[first_feature + i];
  }
}

}  // namespace

Result<FmaScratch> FmaScratch::make(int num_threads) {
  FmaScratch scratch;
  const auto floats = static_cast<size_t>(num_threads * (kWeightsFloats + kSumsFloats));
  QUIRE_ASSIGN_OR_RETURN(scratch.buffer_, Buffer::host(floats * sizeof(float)));
  return scratch;
}

float* FmaScratch::weights(int thread_idx) const {
  return static_cast<float*>(buffer_.data()) + thread_idx * (kWeightsFloats + kSumsFloats);
}

float* FmaScratch::sums(int thread_idx) const {
  return weights(thread_idx) + kWeightsFloats;
}

void linear_fma(std::span<const RowGroup> groups, const float* x, float* out, ThreadPool& pool,
                const FmaScratch& scratch) {
  const auto tasks_of = [](const RowGroup& group) {
    return GroupTasks{.num_parts = ceil_div(group.w->num_panels(), kBlockPanels),
                      .num_row_blocks = ceil_div(group.num_rows, kBlockRows)};
  };
  NodeTasks tasks(pool);
  pool.run([&](int thread_idx) {
    const auto run = [&](const RowGroup& group, int64_t part, int64_t row_block) {
      const PackedLinear& w = *group.w;
      const int64_t first_panel = part * kBlockPanels;
      const int64_t first_row = group.first_row + row_block * kBlockRows;
      const FmaTask task = {.panels = w.panel(first_panel),
                            .num_panels = std::min(kBlockPanels, w.num_panels() - first_panel),
                            .padded_k = w.padded_k(),
                            .x = x + first_row * w.in_features(),
                            .num_rows = std::min(kBlockRows, group.end_row() - first_row),
                            .num_k = w.in_features(),
                            .weights_scratch = scratch.weights(thread_idx),
                            .sums = scratch.sums(thread_idx)};
      run_task(w.dtype(), task);
      write_rows(w, task.sums, task.num_rows, first_panel * kPanelWidth,
                 out + first_row * w.out_features());
    };
    run_group_tasks(groups, tasks, thread_idx, tasks_of, run);
  });
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
