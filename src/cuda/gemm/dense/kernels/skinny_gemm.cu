// Two kernels. In both, the order of a row's sums is fixed and does not depend on the other rows.
//
// skinny_gemm_kernel: a thread block computes 16 * kTiles columns n of out, for all rows t. Its
// warps split K (in chunks of four 16-byte loads per row, kDepth chunks at a time) and add up their
// parts in shared memory, in order. It uses mma m16n8k16 with w as A and x as B. The order of k
// within the instruction is free as long as A and B agree, so a lane takes consecutive k of its
// row: one 16-byte load provides the operands of two instructions, or of four from E4M3 weights,
// and weights reach the tensor cores without shared memory or shuffles. A warp loads its first
// weights before it waits for the kernel that computes x. E4M3 weights are converted to the type of
// x, which is exact. With scales per block, the products of each 128 columns are summed up from
// zero, scaled in F32, and then added to the sums.
//
// generic_gemm_kernel: one warp per column, F32 multiply-adds, up to 4 rows at a time. It reads
// whole rows of w in long contiguous runs, and is the fastest kernel for one row of x.
//
// Both also compute one product per head (PerHeadGemmCall), with the heads along the grid.
#include <iterator>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/dense/dense_kernels.h"
#include "cuda/ops/weight_code.cuh"

namespace quire::cuda {
namespace {

constexpr int kTileRows = 16;   // rows of w per instruction
constexpr int kTileTokens = 8;  // rows of x per instruction

struct Operands {
  const void* w;
  const void* x;
  const void* bias;
  BlockScales w_scales;
  void* out;
  bool out_is_f32;
  int m;
  int64_t n;
  int64_t k;
  // Products per head: the distances between the heads of a token in x and in out.
  int64_t x_width;
  int64_t out_width;
  int64_t x_stride;
  int64_t out_stride;
};

// The operands of one head; `p` itself if there are no heads.
template <typename T, typename W, bool kByHead>
__device__ __forceinline__ Operands operands_of_head(Operands p, unsigned head) {
  if constexpr (kByHead) {
    p.w = static_cast<const W*>(p.w) + head * p.n * p.k;
    p.x = static_cast<const T*>(p.x) + head * p.x_width;
    p.out = static_cast<T*>(p.out) + head * p.out_width;
  } else {
    p.x_stride = p.k;
    p.out_stride = p.n;
  }
  return p;
}

template <typename T>
__device__ __forceinline__ void store_out(const Operands& p, int64_t at, float value) {
  if (p.out_is_f32) {
    static_cast<float*>(p.out)[at] = value;
  } else {
    static_cast<T*>(p.out)[at] = from_float<T>(value);
  }
}

// The scaled and biased value of a column, from its sum of products.
template <typename T, Scaling kScaling>
__device__ __forceinline__ float finish(const Operands& p, int64_t column, float sum) {
  if constexpr (kScaling == Scaling::kRows) sum *= p.w_scales.values[column];
  if (p.bias != nullptr) sum += to_float(static_cast<const T*>(p.bias)[column]);
  return sum;
}

// Returns the four values of a 16-byte load that belong to the lane's instruction `step`, as two
// pairs of type T.
template <typename T, typename W>
__device__ __forceinline__ uint2 pairs_of(const uint4& load, int step) {
  const uint32_t words[] = {load.x, load.y, load.z, load.w};
  if constexpr (std::is_same_v<T, W>) {
    return make_uint2(words[2 * step], words[2 * step + 1]);
  } else {
    return make_uint2(widen<T>(words[step]), widen<T>(words[step] >> 16));
  }
}

// The stages of skinny_gemm_kernel for a warp: load_weights(), load_x() and multiply() per step,
// and write_part() after the last step. T: type of x. W: type of w, either T or E4M3. The barriers
// and the data that each protects:
//
//   wait_for_previous_kernel   x; the first weights are loaded before it
//   __syncthreads              the parts of all warps, which are added up in order
template <typename T, typename W, Scaling kScaling, int kTiles, int kTokenTiles, int kDepth>
struct SkinnyWarp {
  static constexpr int kLaneElements = kWidestVec<W>;  // of K, per lane and chunk
  static constexpr int kChunk = 4 * kLaneElements;     // elements of K per step of a warp
  static constexpr int kLoadsOfX = kLaneElements / kWidestVec<T>;  // 16-byte loads
  static constexpr int64_t kStep = kDepth * kChunk;
  // The number of chunks whose products are summed up before they are scaled.
  static constexpr int kScaledChunks =
      kScaling == Scaling::kBlocks ? static_cast<int>(kScaleColumns) / kChunk : kDepth;
  static_assert(kDepth % kScaledChunks == 0);
  static constexpr int kRows = kTiles * kTileRows;
  static constexpr int kTokens = kTokenTiles * kTileTokens;
  using Sums = float[kTiles][kTokenTiles][4];
  using Part = float[kTokens][kRows];

  int group;    // the lane's row of a tile, and of x
  int quarter;  // the lane's quarter of a chunk
  const W* w_rows[kTiles][2];
  int scales_at[kTiles][2];  // 32 bits each, because registers are scarce
  uint4 w[kDepth][kTiles][2];
  float scales[kDepth / kScaledChunks][kTiles][2];
  uint4 x[kDepth][kTokenTiles][kLoadsOfX];

  // Rows past the end read row n - 1; their sums are not stored.
  __device__ __forceinline__ SkinnyWarp(const Operands& p, int64_t first_row)
      : group(static_cast<int>(threadIdx.x) % 32 / 4), quarter(static_cast<int>(threadIdx.x) % 4) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int64_t row = first_row + tile * kTileRows + half * 8 + group;
        const int64_t read_row = row < p.n ? row : p.n - 1;
        w_rows[tile][half] = static_cast<const W*>(p.w) + read_row * p.k;
        if constexpr (kScaling == Scaling::kBlocks) {
          scales_at[tile][half] = static_cast<int>(p.w_scales.of_row(read_row) - p.w_scales.values);
        }
      }
    }
  }

  // k: the lane's first element of a step.
  __device__ __forceinline__ void load_weights(const Operands& p, int64_t k) {
    const uint4 zeros = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int64_t at = k + d * kChunk;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        w[d][tile][0] = at < p.k ? load_once(w_rows[tile][0] + at) : zeros;
        w[d][tile][1] = at < p.k ? load_once(w_rows[tile][1] + at) : zeros;
      }
    }
    if constexpr (kScaling == Scaling::kBlocks) {
#pragma unroll
      for (int block = 0; block < kDepth / kScaledChunks; ++block) {
        // The columns of kScaledChunks chunks are in the same block of scales.
        const auto column = static_cast<int>(k / kScaleColumns) + block;
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            scales[block][tile][half] = column < p.w_scales.num_columns
                                            ? p.w_scales.values[scales_at[tile][half] + column]
                                            : 0.0F;
          }
        }
      }
    }
  }

  __device__ __forceinline__ void load_x(const Operands& p, int64_t k) {
    const uint4 zeros = make_uint4(0, 0, 0, 0);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int tokens = 0; tokens < kTokenTiles; ++tokens) {
        const int token = tokens * kTileTokens + group;
        const int64_t at = k + d * kChunk;
#pragma unroll
        for (int i = 0; i < kLoadsOfX; ++i) {
          const T* const x_of_p = static_cast<const T*>(p.x);
          x[d][tokens][i] =
              token < p.m && at < p.k
                  ? reinterpret_cast<const uint4*>(x_of_p + token * p.x_stride + at)[i]
                  : zeros;
        }
      }
    }
  }

  // Adds the products of chunk d to four sums of a tile.
  __device__ __forceinline__ void multiply_chunk(int d, int tile, int tokens,
                                                 float (&to)[4]) const {
#pragma unroll
    for (int step = 0; step < 2 * kLoadsOfX; ++step) {
      const uint2 upper = pairs_of<T, W>(w[d][tile][0], step);
      const uint2 lower = pairs_of<T, W>(w[d][tile][1], step);
      const uint2 v = pairs_of<T, T>(x[d][tokens][step / 2], step % 2);
      const uint32_t a[4] = {upper.x, lower.x, upper.y, lower.y};
      mma<T>(to, a, v.x, v.y);
    }
  }

  // Adds the products of the loaded step.
  __device__ __forceinline__ void multiply(Sums& sums) const {
#pragma unroll
    for (int d = 0; d < kDepth; d += kScaledChunks) {
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
        for (int tokens = 0; tokens < kTokenTiles; ++tokens) {
          float(&total)[4] = sums[tile][tokens];
          if constexpr (kScaling == Scaling::kBlocks) {
            float part[4] = {};
#pragma unroll
            for (int i = 0; i < kScaledChunks; ++i) multiply_chunk(d + i, tile, tokens, part);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              total[i] = fmaf(scales[d / kScaledChunks][tile][i / 2], part[i], total[i]);
            }
          } else {
#pragma unroll
            for (int i = 0; i < kScaledChunks; ++i) multiply_chunk(d + i, tile, tokens, total);
          }
        }
      }
    }
  }

  // The lane holds these results of the instruction: rows group and group + 8 of tokens 2 * quarter
  // and 2 * quarter + 1.
  __device__ __forceinline__ void write_part(const Sums& sums, Part& part) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int tokens = 0; tokens < kTokenTiles; ++tokens) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          part[tokens * kTileTokens + quarter * 2 + i % 2][tile * kTileRows + i / 2 * 8 + group] =
              sums[tile][tokens][i];
        }
      }
    }
  }
};

// With scales per block and 16 rows of x, an SM must hold 16 warps, such as two thread blocks of 8
// warps, although a few registers spill then. With 0, the compiler chooses the number of registers.
template <typename T, typename W, Scaling kScaling, int kWarps, int kTiles, int kTokenTiles,
          int kDepth, bool kByHead>
__global__ void __launch_bounds__(kWarps * 32, kScaling == Scaling::kBlocks && kTokenTiles == 2
                                                   ? 16 / kWarps
                                                   : 0) skinny_gemm_kernel(Operands operands) {
  if (!has_code<W>()) return;
  using Warp = SkinnyWarp<T, W, kScaling, kTiles, kTokenTiles, kDepth>;
  const Operands p = operands_of_head<T, W, kByHead>(operands, blockIdx.y);
  const int idx = static_cast<int>(threadIdx.x) / 32;
  const int64_t first_row = int64_t{blockIdx.x} * Warp::kRows;
  Warp warp(p, first_row);
  int64_t k = idx * Warp::kStep + warp.quarter * Warp::kLaneElements;
  warp.load_weights(p, k);
  trigger_dependent_launch();
  wait_for_previous_kernel();
  typename Warp::Sums sums = {};
  for (;;) {
    warp.load_x(p, k);
    warp.multiply(sums);
    k += kWarps * Warp::kStep;
    if (k - warp.quarter * Warp::kLaneElements >= p.k) break;
    warp.load_weights(p, k);
  }
  __shared__ typename Warp::Part parts[kWarps];
  warp.write_part(sums, parts[idx]);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < p.m * Warp::kRows; i += kWarps * 32) {
    const int token = i / Warp::kRows;
    const int row = i % Warp::kRows;
    const int64_t column = first_row + row;
    if (column >= p.n) continue;
    float sum = 0;
#pragma unroll
    for (int part = 0; part < kWarps; ++part) sum += parts[part][token][row];
    store_out<T>(p, token * p.out_stride + column, finish<T, kScaling>(p, column, sum));
  }
}

// Grid: (thread blocks of columns, groups of rows, heads). Waits for the previous kernel before it
// reads weights. Loading the first weights before the wait, as skinny_gemm_kernel does, splits the
// loop's loads and is 20 % slower.
template <typename T, typename W, Scaling kScaling, int kVec, int kTokens, bool kByHead>
__global__ void generic_gemm_kernel(Operands operands) {
  if (!has_code<W>()) return;
  const Operands p = operands_of_head<T, W, kByHead>(operands, blockIdx.z);
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t column = int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  const int first = static_cast<int>(blockIdx.y) * kTokens;
  if (column >= p.n) return;  // the whole warp returns
  const W* w = static_cast<const W*>(p.w) + column * p.k;
  const T* x = static_cast<const T*>(p.x) + first * p.x_stride;
  const float* scales = kScaling == Scaling::kBlocks ? p.w_scales.of_row(column) : nullptr;
  float sums[kTokens] = {};
#pragma unroll 4
  for (int64_t k = lane * kVec; k < p.k; k += 32 * kVec) {
    float a[kVec];
    load_floats(w + k, a);
    float scale = 1.0F;
    if constexpr (kScaling == Scaling::kBlocks) scale = scales[k / kScaleColumns];
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      if (first + t >= p.m) continue;
      float b[kVec];
      load_floats(x + t * p.x_stride + k, b);
      if constexpr (kScaling == Scaling::kBlocks) {
        float part = 0;
#pragma unroll
        for (int j = 0; j < kVec; ++j) part += a[j] * b[j];
        sums[t] += scale * part;
      } else {
#pragma unroll
        for (int j = 0; j < kVec; ++j) sums[t] += a[j] * b[j];
      }
    }
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float sum = warp_sum(sums[t]);
    if (lane != 0 || first + t >= p.m) continue;
    store_out<T>(p, (first + t) * p.out_stride + column, finish<T, kScaling>(p, column, sum));
  }
}

Operands operands_of(const GemmCall& call) {
  Operands p = {};
  p.w = call.w.data;
  p.x = call.x.data;
  p.bias = call.bias.data;
  p.w_scales = block_scales(call.w_scales.as<const float>(), call.scale_rows, call.w.shape[1]);
  p.out = call.out.data;
  p.out_is_f32 = call.out.dtype == DType::kF32;
  p.m = static_cast<int>(call.x.shape[0]);
  p.n = call.w.shape[0];
  p.k = call.w.shape[1];
  return p;
}

Operands operands_of(const PerHeadGemmCall& call) {
  Operands p = {};
  p.w = call.w.data;
  p.x = call.x.data;
  p.out = call.out.data;
  p.m = static_cast<int>(call.x.shape[0]);
  p.n = call.w.shape[1];
  p.k = call.w.shape[2];
  p.x_width = call.x.shape[2];
  p.out_width = call.out.shape[2];
  p.x_stride = call.x.shape[1] * p.x_width;
  p.out_stride = call.out.shape[1] * p.out_width;
  return p;
}

template <typename T, typename W, Scaling kScaling, int kWarps, int kTiles, int kTokenTiles,
          int kDepth>
void launch_skinny(const LaunchContext& context, const Operands& p) {
  QUIRE_LAUNCH(*context.stream,
               (skinny_gemm_kernel<T, W, kScaling, kWarps, kTiles, kTokenTiles, kDepth, false>),
               context.shape(ceil_div(p.n, kTiles * kTileRows), kWarps * 32), p);
}

template <typename T, typename W, Scaling kScaling, int kVec, int kTokens, bool kByHead>
void launch_generic(const LaunchContext& context, const Operands& p, int64_t num_heads = 1) {
  constexpr int kBlock = 256;
  LaunchShape shape = context.shape(ceil_div(p.n, kBlock / 32), kBlock, ceil_div(p.m, kTokens));
  shape.grid.z = static_cast<unsigned>(num_heads);
  QUIRE_LAUNCH(*context.stream, (generic_gemm_kernel<T, W, kScaling, kVec, kTokens, kByHead>),
               shape, p);
}

// A warp processes 128 elements of K at once. Heads with more elements get four warps per thread
// block, others one.
constexpr int kHeadDepth = 4;
constexpr int kHeadWarpElements = kHeadDepth * 4 * 8;

template <typename T, int kWarps, int kTokenTiles>
void launch_head_skinny(const LaunchContext& context, const Operands& p, int64_t num_heads) {
  QUIRE_LAUNCH(*context.stream,
               (skinny_gemm_kernel<T, T, Scaling::kNone, kWarps, 1, kTokenTiles, kHeadDepth, true>),
               context.shape(ceil_div(p.n, kTileRows), kWarps * 32, num_heads), p);
}

// All variants: warps, tiles per warp, chunks in flight per warp.
template <typename T, typename W, Scaling kScaling, int kTokenTiles>
void launch_variant(const LaunchContext& context, const Operands& p, int variant) {
  switch (variant) {
    case 0:
      return launch_skinny<T, W, kScaling, 8, 1, kTokenTiles, 4>(context, p);
    case 1:
      return launch_skinny<T, W, kScaling, 8, 2, kTokenTiles, 2>(context, p);
    default:
      return launch_skinny<T, W, kScaling, 16, 2, kTokenTiles, 2>(context, p);
  }
}

constexpr const char* kVariantNames[] = {"8x1x4", "8x2x2", "16x2x2"};

// Calls body(type of x, type of w, scaling). The types are passed as std::type_identity.
template <typename T, typename Body>
void with_weight_type(const GemmCall& call, const Body& body) {
  constexpr std::type_identity<T> type;
  constexpr std::type_identity<__nv_fp8_e4m3> fp8;
  if (!call.has_fp8_weights()) return body(type, type, ScalingConstant<Scaling::kNone>());
  if (call.scale_rows == 0) return body(type, fp8, ScalingConstant<Scaling::kRows>());
  body(type, fp8, ScalingConstant<Scaling::kBlocks>());
}

}  // namespace

int num_skinny_variants() {
  return static_cast<int>(std::size(kVariantNames));
}

const char* skinny_variant_name(int variant) {
  return kVariantNames[variant];
}

bool skinny_takes(const GemmCall& call) {
  const int64_t m = call.x.shape[0];
  const int64_t load_elements = call.has_fp8_weights() ? 16 : 8;
  return call.x.dtype != DType::kF32 && m >= 1 && m <= kMaxSkinnyRows &&
         call.w.shape[1] % load_elements == 0 && is_aligned({call.w.data, call.x.data}, 16);
}

void run_skinny_gemm(const LaunchContext& context, const GemmCall& call, int variant) {
  const Operands p = operands_of(call);
  const auto launch = [&](auto type, auto weight_type, auto scaling) {
    using T = typename decltype(type)::type;
    using W = typename decltype(weight_type)::type;
    if (p.m <= kTileTokens) return launch_variant<T, W, scaling.value, 1>(context, p, variant);
    launch_variant<T, W, scaling.value, 2>(context, p, variant);
  };
  if (call.x.dtype == DType::kF16) return with_weight_type<__half>(call, launch);
  with_weight_type<__nv_bfloat16>(call, launch);
}

void run_generic_gemm(const LaunchContext& context, const GemmCall& call) {
  const Operands p = operands_of(call);
  const auto launch = [&](auto type, auto weight_type, auto scaling) {
    using T = typename decltype(type)::type;
    using W = typename decltype(weight_type)::type;
    constexpr Scaling kScaling = scaling.value;
    const bool vectors = p.k % kWidestVec<W> == 0 && is_aligned({p.w, p.x}, 16);
    with_bool(vectors, [&](auto by_vectors) {
      constexpr int kVec = by_vectors.value ? kWidestVec<W> : 1;
      if (p.m == 1) return launch_generic<T, W, kScaling, kVec, 1, false>(context, p);
      if (p.m == 2) return launch_generic<T, W, kScaling, kVec, 2, false>(context, p);
      launch_generic<T, W, kScaling, kVec, 4, false>(context, p);
    });
  };
  with_float_type(call.x.dtype, [&](auto type) {
    with_weight_type<typename decltype(type)::type>(call, launch);
  });
}

bool skinny_takes(const PerHeadGemmCall& call) {
  const int64_t m = call.x.shape[0];
  return call.x.dtype != DType::kF32 && m >= 1 && m <= kMaxSkinnyRows && call.w.shape[2] % 8 == 0 &&
         call.x.shape[2] % 8 == 0 && is_aligned({call.w.data, call.x.data}, 16);
}

void run_skinny_gemm(const LaunchContext& context, const PerHeadGemmCall& call) {
  const Operands p = operands_of(call);
  const int64_t num_heads = call.w.shape[0];
  const auto launch = [&](auto type) {
    using T = typename decltype(type)::type;
    with_bool(p.k > kHeadWarpElements, [&](auto has_several) {
      constexpr int kWarps = has_several.value ? 4 : 1;
      if (p.m <= kTileTokens) return launch_head_skinny<T, kWarps, 1>(context, p, num_heads);
      launch_head_skinny<T, kWarps, 2>(context, p, num_heads);
    });
  };
  if (call.x.dtype == DType::kF16) return launch(std::type_identity<__half>());
  launch(std::type_identity<__nv_bfloat16>());
}

void run_generic_gemm(const LaunchContext& context, const PerHeadGemmCall& call) {
  const Operands p = operands_of(call);
  with_float_type(call.x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    launch_generic<T, T, Scaling::kNone, 1, 4, true>(context, p, call.w.shape[0]);
  });
}

}  // namespace quire::cuda
