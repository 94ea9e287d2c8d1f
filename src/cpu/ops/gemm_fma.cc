// GEMM with F32 fused multiply-adds, through Highway.
//
// Numerics: out[t, n] = (((x[t, 0] w[n, 0]) + x[t, 1] w[n, 1]) + …) + bias[n], with k ascending and
// one fused multiply-add per step (a multiplication and an addition on targets without FMA). Lanes
// are output features, so the order does not depend on the number of rows, blocks or threads.
// Between blocks of k, the sums are stored as F32, which is exact.
//
// Work: a task multiplies kBlockPanels panels by all rows, in batches of rows whose sums fit
// into registers. With up to kFewRows rows, one product reads whole panels. With more rows, k is
// split into slices. If there are several batches, the first batch converts a slice of F16 or BF16
// weights to F32, in cache, for the other batches. Products prefetch the next slice, or the first
// slice of the thread's probable next task. Activations are packed by slice, so that the batches of
// a slice read consecutive memory.
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

// The maximum rows and vectors per product, so that sums and operands fit into the registers. For
// up to kFewRows rows, products read whole panels, once and in order. For more rows, products of a
// slice of a panel need fewer loads per multiplication.
#if HWY_TARGET == HWY_AVX3
constexpr int kFewRows = 6;
constexpr int kFewVecs = 2 * kVecs;
constexpr int kRows = 6;
constexpr int kSliceVecs = 2 * kVecs;
#elif HWY_TARGET == HWY_AVX2
constexpr int kFewRows = 3;
constexpr int kFewVecs = kVecs;
constexpr int kRows = 6;
constexpr int kSliceVecs = kVecs / 2;
#else
constexpr int kFewRows = 1;
constexpr int kFewVecs = kVecs;
constexpr int kRows = 1;
constexpr int kSliceVecs = kVecs;
#endif
static_assert(kSliceDepth * std::max(kVecs, kSliceVecs) * kLanes <= kSliceFloats,
              "a slice fits its scratch");
static_assert(kSliceDepth % 2 == 0, "pairs of BF16 are not divided");

// Readers load vector `v` of the features at index k as F32. kOdd: whether k is odd.
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
    // Without a conversion instruction, Highway converts infinity to 65536.
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

// The weights of one product: vector `n` at index k.
template <class Reader>
struct PanelWeights {
  const typename Reader::T* panels = nullptr;  // at the first k
  int64_t panel_stride = 0;                    // elements
  int first_vec = 0;                           // of a panel

  template <bool kOdd>
  HWY_INLINE V load(int64_t k, int n) const {
    return Reader::template load<kOdd>(panels + n / kVecs * panel_stride, k, first_vec + n % kVecs);
  }
};

// Weights that a product of kN vectors has stored, as [k][kN].
template <int kN>
struct SliceWeights {
  const float* slice = nullptr;

  template <bool kOdd>
  HWY_INLINE V load(int64_t k, int n) const {
    return hn::Load(D(), slice + (k * kN + n) * kLanes);
  }
};

// Weights of panels that will be needed soon. Products prefetch them line by line between their
// steps, so that the memory and the arithmetic units work at the same time.
class NextWeights {
 public:
  // `num_bytes` of each panel; panels are `stride` bytes apart.
  NextWeights(const void* first_panel, int64_t num_bytes, int64_t stride)
      : at_(static_cast<const std::byte*>(first_panel)), end_(at_ + num_bytes), stride_(stride) {}

  template <int kPanels>
  HWY_INLINE void fetch_lines() {
    if (at_ >= end_) return;
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) __builtin_prefetch(at_ + p * stride_, 0, kIntoL2);
    at_ += kLineBytes;
  }

 private:
  static constexpr int64_t kLineBytes = 64;
  static constexpr int kIntoL2 = 2;

  const std::byte* at_;
  const std::byte* end_;
  int64_t stride_;
};

// Activations of the rows of one product, in place: [row][x_stride].
struct RowsInPlace {
  const float* x = nullptr;
  int64_t x_stride = 0;

  HWY_INLINE float at(int64_t k, int row) const { return x[row * x_stride + k]; }
};

// Activations of the rows of one product, packed by pack_rows(): [k][kR].
template <int kR>
struct PackedRows {
  const float* x = nullptr;

  HWY_INLINE float at(int64_t k, int row) const { return x[k * kR + row]; }
};

// The part of a task in which all products have the same weights.
struct Block {
  int64_t first_k = 0;
  int64_t num_k = 0;
  float* sums = nullptr;   // of the task's first row
  float* slice = nullptr;  // the buffer to which a product writes its weights
};

// The division of a task into products, for few and for many rows.
struct FewRows {
  static constexpr int kMaxRows = kFewRows;
  static constexpr int kMaxVecs = kFewVecs;
  static constexpr bool kConverts = false;  // because there is a single batch

  template <int kR>
  static RowsInPlace rows(const FmaTask& task, int64_t first_row, const Block& block) {
    return {task.x + first_row * task.num_k + block.first_k, task.num_k};
  }
};

struct ManyRows {
  static constexpr int kMaxRows = kRows;
  static constexpr int kMaxVecs = kSliceVecs;
  static constexpr bool kConverts = true;

  template <int kR>
  static PackedRows<kR> rows(const FmaTask& task, int64_t first_row, const Block& block) {
    return {task.packed_x + block.first_k * task.num_rows + first_row * block.num_k};
  }
};

// sums[r, :] (+)= x[r, :] · weights for kR rows and kN vectors. With kStores, also writes the
// weights to block.slice.
template <int kR, int kN, bool kStores, class X, class Weights>
void multiply(const X x, const Weights weights, const Block& block, float* HWY_RESTRICT sums,
              NextWeights& next) {
  constexpr int64_t kSumsStride = kBlockPanels * kPanelWidth;
  constexpr int kPanels = std::max(1, kN / kVecs);
  const D d;
  const int64_t num_k = block.num_k;
  float* HWY_RESTRICT slice = block.slice;
  NextWeights fetch = next;
  V acc[kR][kN];
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) {
      const float* at = sums + r * kSumsStride + n * kLanes;
      acc[r][n] = block.first_k == 0 ? hn::Zero(d) : hn::Load(d, at);
    }
  }
  const auto step = [&](auto odd, int64_t k) HWY_ATTR {
    V w[kN];
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) {
      w[n] = weights.template load<odd.value>(k, n);
      if constexpr (kStores) hn::Store(w[n], d, slice + (k * kN + n) * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      const V x_k = hn::Set(d, x.at(k, r));
#pragma GCC unroll 64
      for (int n = 0; n < kN; ++n) acc[r][n] = hn::MulAdd(w[n], x_k, acc[r][n]);
    }
  };
  for (int64_t k = 0; k + 1 < num_k; k += 2) {
    fetch.template fetch_lines<kPanels>();
    step(std::false_type(), k);
    step(std::true_type(), k + 1);
  }
  if (num_k % 2 != 0) step(std::false_type(), num_k - 1);
#pragma GCC unroll 16
  for (int r = 0; r < kR; ++r) {
#pragma GCC unroll 64
    for (int n = 0; n < kN; ++n) hn::Store(acc[r][n], d, sums + r * kSumsStride + n * kLanes);
  }
  next = fetch;
}

// Calls multiply() with the number of rows in a batch, 1 to kR, as a constant.
template <class Division, int kN, bool kStores, int kR = Division::kMaxRows, class Weights>
void multiply_batch(const FmaTask& task, int64_t first_row, int64_t num_rows,
                    const Weights& weights, const Block& block, NextWeights& next) {
  if constexpr (kR > 1) {
    if (num_rows < kR) {
      return multiply_batch<Division, kN, kStores, kR - 1>(task, first_row, num_rows, weights,
                                                           block, next);
    }
  }
  multiply<kR, kN, kStores>(Division::template rows<kR>(task, first_row, block), weights, block,
                            block.sums + first_row * kBlockPanels * kPanelWidth, next);
}

// Multiplies one batch of rows by kN vectors of weights. The first of several batches stores the
// weights as F32 for the other batches.
template <class Division, int kN, class Reader>
void multiply_vectors(const FmaTask& task, const RowBatches& batches, int64_t batch,
                      const PanelWeights<Reader>& weights, const Block& block, NextWeights& next) {
  const int64_t row = batches.begin(batch);
  const int64_t num_rows = batches.num_rows(batch);
  if constexpr (Division::kConverts && !std::is_same_v<Reader, ReadF32>) {
    if (batches.count() > 1) {
      const SliceWeights<kN> converted = {block.slice};
      return batch == 0
                 ? multiply_batch<Division, kN, true>(task, row, num_rows, weights, block, next)
                 : multiply_batch<Division, kN, false>(task, row, num_rows, converted, block, next);
    }
  }
  multiply_batch<Division, kN, false>(task, row, num_rows, weights, block, next);
}

// Multiplies all rows of a task by some panels, for `depth` values of k, one batch of rows after
// another and kN vectors at a time.
template <class Reader, class Division, int kN>
void multiply_panels(const FmaTask& task, int64_t first_panel, int64_t first_k, int64_t depth) {
  using T = typename Reader::T;
  const int64_t panel_stride = task.padded_k * kPanelWidth;
  const auto weights_at = [&](const std::byte* of_task, int64_t k) {
    return reinterpret_cast<const T*>(of_task) + first_panel * panel_stride + k * kPanelWidth;
  };
  const T* panels = weights_at(task.panels, first_k);
  const int64_t num_k = std::min(depth, task.num_k - first_k);
  const int64_t rest_k = task.num_k - first_k - num_k;
  const T* next_panels = nullptr;
  int64_t next_k = 0;
  if (rest_k > 0) {
    next_panels = weights_at(task.panels, first_k + num_k);
    next_k = std::min(depth, rest_k);
  } else if (task.next_panels != nullptr) {
    next_panels = weights_at(task.next_panels, 0);
    next_k = std::min(kSliceDepth, task.num_k);
  }
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  const RowBatches batches(task.num_rows, Division::kMaxRows);
  NextWeights next(next_panels, next_k * kPanelWidth * kBytes, panel_stride * kBytes);
  for (int64_t i = 0; i < batches.count(); ++i) {
    for (int vec = 0; vec < kVecs; vec += kN) {
      const PanelWeights<Reader> weights = {
          .panels = panels, .panel_stride = panel_stride, .first_vec = vec};
      const Block block = {.first_k = first_k,
                           .num_k = num_k,
                           .sums = task.sums + first_panel * kPanelWidth + vec * kLanes,
                           .slice = task.slice + num_k * vec * kLanes};
      multiply_vectors<Division, kN>(task, batches, i, weights, block, next);
    }
  }
}

template <class Reader, class Division>
void multiply_all(const FmaTask& task, int64_t depth) {
  constexpr int kN = Division::kMaxVecs;
  constexpr int64_t kPanels = std::max(1, kN / kVecs);
  for (int64_t k = 0; k < task.num_k; k += depth) {
    int64_t p = 0;
    for (; p + kPanels <= task.num_panels; p += kPanels) {
      multiply_panels<Reader, Division, kN>(task, p, k, depth);
    }
    if constexpr (kPanels > 1) {  // the last panel of an odd number
      if (p < task.num_panels) multiply_panels<Reader, Division, kVecs>(task, p, k, depth);
    }
  }
}

template <class Reader>
void run_task(const FmaTask& task) {
  if (task.num_rows <= kFewRows) {
    multiply_all<Reader, FewRows>(task, task.num_k);
  } else {
    multiply_all<Reader, ManyRows>(task, kSliceDepth);
  }
}

bool packs_rows(int64_t num_rows) {
  return num_rows > kFewRows;
}

// Packs columns k_begin to k_end of all rows to packed_x[slice][batch][k of the slice][row of the
// batch]. k_begin must be the beginning of a slice. Only the last slice of the matrix may be
// shorter than the others.
void pack_rows(const float* HWY_RESTRICT x, int64_t num_rows, int64_t num_k, int64_t k_begin,
               int64_t k_end, float* HWY_RESTRICT packed_x) {
  const RowBatches batches(num_rows, kRows);
  for (int64_t first_k = k_begin; first_k < k_end; first_k += kSliceDepth) {
    const int64_t depth = std::min(kSliceDepth, k_end - first_k);
    for (int64_t i = 0; i < batches.count(); ++i) {
      const int64_t first_row = batches.begin(i);
      const int64_t rows = batches.num_rows(i);
      const float* from = x + first_row * num_k + first_k;
      float* to = packed_x + first_k * num_rows + first_row * depth;
      for (int64_t k = 0; k < depth; ++k) {
        for (int64_t r = 0; r < rows; ++r) to[k * rows + r] = from[r * num_k + k];
      }
    }
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

HWY_EXPORT(packs_rows);
HWY_EXPORT(pack_rows);
HWY_EXPORT(run_f32);
HWY_EXPORT(run_f16);
HWY_EXPORT(run_bf16);

namespace {

constexpr int64_t kSumsFloats = kMaxGroupedRows * kBlockPanels * kPanelWidth;
constexpr int64_t kPackDepth = 2 * kSliceDepth;  // columns of a row that one task packs
constexpr int64_t kBytesPerThread = (kSliceFloats + kSumsFloats) * int64_t{sizeof(float)};

int64_t x_bytes(int64_t in_features) {
  return kMaxGroupedRows * in_features * int64_t{sizeof(float)};
}

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

// Packs the activations of all groups whose products read packed activations.
void pack_groups(std::span<const RowGroup> groups, const float* x, ThreadPool& pool,
                 float* packed_x) {
  const auto packs = [](const RowGroup& group) {
    return HWY_DYNAMIC_DISPATCH(packs_rows)(group.num_rows);
  };
  if (std::ranges::none_of(groups, packs)) return;
  const auto num_parts = [&](const RowGroup& group) {
    return packs(group) ? ceil_div(group.w->in_features(), kPackDepth) : 0;
  };
  const auto pack = [&](const RowGroup& group, int64_t part) {
    const int64_t num_k = group.w->in_features();
    const int64_t first_x = group.first_row * num_k;
    HWY_DYNAMIC_DISPATCH(pack_rows)
    (x + first_x, group.num_rows, num_k, part * kPackDepth,
     std::min((part + 1) * kPackDepth, num_k), packed_x + first_x);
  };
  for_group_parts(groups, groups.front().w->in_features(), pool, num_parts, pack);
}

}  // namespace

Status FmaScratch::reserve(int64_t in_features, int num_threads) {
  QUIRE_RETURN_IF_ERROR(grow(num_threads * kBytesPerThread, of_threads_));
  return grow(x_bytes(in_features), x_);
}

int64_t FmaScratch::num_bytes(int64_t in_features, int num_threads) {
  return num_threads * kBytesPerThread + x_bytes(in_features);
}

float* FmaScratch::slice(int thread_idx) const {
  return static_cast<float*>(of_threads_.data()) + thread_idx * (kSliceFloats + kSumsFloats);
}

float* FmaScratch::sums(int thread_idx) const {
  return slice(thread_idx) + kSliceFloats;
}

void linear_fma(std::span<const RowGroup> groups, const float* x, float* out, ThreadPool& pool,
                const FmaScratch& scratch) {
  pack_groups(groups, x, pool, scratch.x());
  const auto num_parts = [](const RowGroup& group) {
    return ceil_div(group.w->num_panels(), kBlockPanels);
  };
  NodeTasks tasks(pool);
  pool.run([&](int thread_idx) {
    NextPart next_part;
    const auto run = [&](const RowGroup& group, int64_t part) {
      const PackedLinear& w = *group.w;
      const int64_t first_panel = part * kBlockPanels;
      const int64_t next = next_part.after(part);
      const bool has_next = HWY_DYNAMIC_DISPATCH(packs_rows)(group.num_rows) &&
                            (next + 1) * kBlockPanels <= w.num_panels();
      const int64_t first_x = group.first_row * w.in_features();
      const FmaTask task = {.panels = w.panel(first_panel),
                            .next_panels = has_next ? w.panel(next * kBlockPanels) : nullptr,
                            .num_panels = std::min(kBlockPanels, w.num_panels() - first_panel),
                            .padded_k = w.padded_k(),
                            .x = x + first_x,
                            .packed_x = scratch.x() + first_x,
                            .num_rows = group.num_rows,
                            .num_k = w.in_features(),
                            .slice = scratch.slice(thread_idx),
                            .sums = scratch.sums(thread_idx)};
      run_task(w.dtype(), task);
      w.write_sums(task.sums, kBlockPanels * kPanelWidth, task.num_rows, first_panel * kPanelWidth,
                   out + group.first_row * w.out_features());
    };
    run_group_tasks(groups, tasks, thread_idx, num_parts, run);
  });
}

}  // namespace quire::cpu
#endif  // HWY_ONCE
