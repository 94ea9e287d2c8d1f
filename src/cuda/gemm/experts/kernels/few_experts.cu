// The experts of few tokens, in two kernels. Both are limited by memory bandwidth, so they read an
// expert's weights once per chunk of up to kFewTokens tokens. All sums have a fixed order.
//
// few_gate_up_kernel: a thread block computes kWarps columns, one per warp, for the expert of pair
// `blockIdx.y` of the chunk. If several pairs have the expert, the thread block of the first pair
// computes all of them, and the thread blocks of the other pairs return. So the launch has the same
// shape for any ids.
//
// few_down_kernel: a thread block computes kColumns columns of out for all tokens of a chunk. Its
// warps share the chunk's experts; if there are fewer experts than warps, they also split K. They
// add up their sums in shared memory, in order. The ids were complete before few_gate_up_kernel let
// this kernel start, so a warp loads its first weights while few_gate_up_kernel still runs.
#include <algorithm>
#include <type_traits>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/experts/expert_kernels.h"
#include "cuda/ops/activation.cuh"
#include "cuda/ops/weight_code.cuh"

namespace quire::cuda {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kLanes = 32;
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kLanes;
constexpr int kColumns = 4;  // of out, per thread block

struct Params {
  const void* x;         // [num_tokens, hidden]
  const int32_t* ids;    // [num_tokens, top_k]
  const float* weights;  // [num_tokens, top_k]
  const void* gate_up;
  BlockScales gate_up_scales;  // one per row, with Scaling::kRows
  const void* gate_up_bias;    // [experts, 2 * inner]; null: none
  const void* down;
  BlockScales down_scales;
  const void* down_bias;  // [experts, hidden]; null: none
  void* product;          // [num_tokens * top_k, inner]
  void* out;              // [num_tokens, hidden]
  int num_tokens;
  int top_k;
  int64_t hidden;
  int64_t inner;
  Activation activation;
  bool adds;
};

// The tokens of a thread block.
struct Chunk {
  int64_t first_token;
  int num_tokens;
  int num_pairs;
};

template <int kTokens>
__device__ __forceinline__ Chunk chunk_of_block(const Params& p) {
  Chunk chunk = {};
  chunk.first_token = int64_t{blockIdx.z} * kTokens;
  chunk.num_tokens = static_cast<int>(min(int64_t{kTokens}, p.num_tokens - chunk.first_token));
  chunk.num_pairs = chunk.num_tokens * p.top_k;
  return chunk;
}

// Copies a chunk's ids to shared memory. The loads bypass the L1, because few_down_kernel may have
// become resident before the ids were written.
__device__ __forceinline__ void copy_ids(const Params& p, const Chunk& chunk, int32_t* ids) {
  const int32_t* from = p.ids + chunk.first_token * p.top_k;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.num_pairs; i += kThreads) {
    ids[i] = __ldcg(from + i);
  }
  __syncthreads();
}

// Finds the pair with the expert of `pair`, for each token of the chunk; -1: the token does not
// have the expert. Returns whether `pair` is the first pair with the expert. All lanes of a warp
// call this.
template <int kTokens>
__device__ __forceinline__ bool find_pairs(const int32_t* ids, const Chunk& chunk, int top_k,
                                           int pair, int (&pair_of)[kTokens]) {
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int expert = ids[pair];
  bool is_first = true;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    pair_of[t] = -1;
    if (t >= chunk.num_tokens) continue;
    for (int first = t * top_k; first < (t + 1) * top_k; first += kLanes) {
      const int i = first + lane;
      const unsigned found = __ballot_sync(kAllLanes, i < (t + 1) * top_k && ids[i] == expert);
      if (found != 0) pair_of[t] = first + __ffs(static_cast<int>(found)) - 1;
    }
    if (pair_of[t] >= 0 && pair_of[t] < pair) is_first = false;
  }
  return is_first;
}

// kVec weights in their memory format.
template <typename W, int kVec>
using Packed = std::conditional_t<kVec == 1, W, uint4>;

template <int kVec, typename W>
__device__ __forceinline__ Packed<W, kVec> load_packed(const W* address) {
  if constexpr (kVec == 1) {
    return *address;
  } else {
    static_assert(kVec == kWidestVec<W>);
    return load_once(address);
  }
}

// Sum of w * x. w: packed weights, x: kVec numbers.
template <typename W, int kVec>
__device__ __forceinline__ float dot(const Packed<W, kVec>& w, const float (&x)[kVec]) {
  float weights[kVec];
  load_floats(reinterpret_cast<const W*>(&w), weights);
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < kVec; ++i) sum = fmaf(weights[i], x[i], sum);
  return sum;
}

// Sums each value over every group of kCount lanes; kCount is a power of two up to 32. Returns the
// sum of value lane % kCount. Each step halves the number of values of a lane, so this needs far
// fewer shuffles than kCount separate sums. It is recursive, because the compiler would not unroll
// a loop with such a step, and would keep the values in local memory.
template <int kCount>
__device__ __forceinline__ float scatter_sums(const float (&numbers)[kCount]) {
  if constexpr (kCount == 1) {
    return numbers[0];
  } else {
    constexpr int kHalf = kCount / 2;
    const bool keeps_upper = (threadIdx.x & kHalf) != 0;
    float halves[kHalf];
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float kept = keeps_upper ? numbers[i + kHalf] : numbers[i];
      const float sent = keeps_upper ? numbers[i] : numbers[i + kHalf];
      halves[i] = kept + __shfl_xor_sync(kAllLanes, sent, kHalf);
    }
    return scatter_sums(halves);
  }
}

// Sums each value over all lanes of the warp; returns the sum of value lane % kCount.
template <int kCount>
__device__ __forceinline__ float warp_scatter_sums(const float (&numbers)[kCount]) {
  float sum = scatter_sums(numbers);
#pragma unroll
  for (int distance = kCount; distance < kLanes; distance *= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  return sum;
}

// T: type of x, product and out. W: type of the weights, either T or E4M3.
// Grid: (thread blocks of columns, pairs of a chunk, chunks).
template <typename T, typename W, Scaling kScaling, int kVec, int kTokens>
__global__ void __launch_bounds__(kThreads, 2) few_gate_up_kernel(const Params p) {
  if (!has_code<W>()) return;
  constexpr int kDepth = 4;  // loads in flight, per row
  extern __shared__ int32_t ids[];
  // The trigger follows the wait, so the ids are complete when few_down_kernel starts early.
  wait_for_previous_kernel();
  trigger_dependent_launch();
  const Chunk chunk = chunk_of_block<kTokens>(p);
  const auto pair = static_cast<int>(blockIdx.y);
  if (pair >= chunk.num_pairs) return;
  copy_ids(p, chunk, ids);
  int pair_of[kTokens];
  if (!find_pairs(ids, chunk, p.top_k, pair, pair_of)) return;

  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int64_t column = int64_t{blockIdx.x} * kWarps + threadIdx.x / kLanes;
  if (column >= p.inner) return;
  const int64_t first_row = ids[pair] * 2 * p.inner;  // of the expert
  const int64_t gate_row = first_row + column;
  const W* gate = static_cast<const W*>(p.gate_up) + gate_row * p.hidden;
  const W* up = gate + p.inner * p.hidden;
  const T* x = static_cast<const T*>(p.x) + chunk.first_token * p.hidden;
  // With block scales: the scales of the two rows. The rows of each expert are counted from 0.
  const float* gate_scales = nullptr;
  const float* up_scales = nullptr;
  if constexpr (kScaling == Scaling::kBlocks) {
    const BlockScales scales = p.gate_up_scales.of_matrix(ids[pair], 2 * p.inner);
    gate_scales = scales.of_row(column);
    up_scales = scales.of_row(p.inner + column);
  }
  float sums[2 * kTokens] = {};  // of gate, then of up
  for (int64_t k = lane * kVec; k < p.hidden; k += kDepth * kLanes * kVec) {
    Packed<W, kVec> gates[kDepth];
    Packed<W, kVec> ups[kDepth];
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int64_t at = k + d * kLanes * kVec;
      if (at >= p.hidden) continue;
      gates[d] = load_packed<kVec>(gate + at);
      ups[d] = load_packed<kVec>(up + at);
    }
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int64_t at = k + d * kLanes * kVec;
      if (at >= p.hidden) continue;
      float gate_scale = 1.0F;
      float up_scale = 1.0F;
      if constexpr (kScaling == Scaling::kBlocks) {
        gate_scale = gate_scales[at / kScaleColumns];
        up_scale = up_scales[at / kScaleColumns];
      }
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        if (pair_of[t] < 0) continue;
        float numbers[kVec];
        load_floats(x + t * p.hidden + at, numbers);
        sums[t] += gate_scale * dot<W>(gates[d], numbers);
        sums[kTokens + t] += up_scale * dot<W>(ups[d], numbers);
      }
    }
  }
  // Lane t has the gate sum of token t, and lane kTokens + t its up sum.
  float gate_sum = warp_scatter_sums(sums);
  float up_sum = __shfl_down_sync(kAllLanes, gate_sum, kTokens);
  int own_pair = -1;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    if (lane == t) own_pair = pair_of[t];
  }
  if (own_pair < 0) return;
  if constexpr (kScaling == Scaling::kRows) {
    gate_sum *= p.gate_up_scales.values[gate_row];
    up_sum *= p.gate_up_scales.values[gate_row + p.inner];
  }
  if (p.gate_up_bias != nullptr) {
    const T* const bias = static_cast<const T*>(p.gate_up_bias) + gate_row;
    gate_sum += to_float(bias[0]);
    up_sum += to_float(bias[p.inner]);
  }
  const int64_t row = chunk.first_token * p.top_k + own_pair;
  static_cast<T*>(p.product)[row * p.inner + column] =
      from_float<T>(gated_product<T>(p.activation, gate_sum, up_sum));
}

// The experts of a chunk that a warp multiplies, one after the other.
template <int kTokens>
class ExpertWalk {
 public:
  // Each of `step` warps processes every step-th pair. Pairs that are not the first of their expert
  // are skipped.
  __device__ __forceinline__ ExpertWalk(const int32_t* ids, const Chunk& chunk, int top_k,
                                        int first, int step)
      : ids_(ids), chunk_(chunk), top_k_(top_k), pair_(first), step_(step) {
    find();
  }
  __device__ __forceinline__ bool has_expert() const { return pair_ < chunk_.num_pairs; }
  __device__ __forceinline__ int expert() const { return ids_[pair_]; }
  // The token's pair with the expert, or -1.
  __device__ __forceinline__ int pair_of(int token) const { return pair_of_[token]; }
  __device__ __forceinline__ void advance() {
    pair_ += step_;
    find();
  }

 private:
  __device__ __forceinline__ void find() {
    while (has_expert() && !find_pairs(ids_, chunk_, top_k_, pair_, pair_of_)) pair_ += step_;
  }

  const int32_t* ids_;
  const Chunk& chunk_;
  int top_k_;
  int pair_;
  int step_;
  int pair_of_[kTokens];
};

// Grid: (thread blocks of columns, 1, chunks).
template <typename T, typename W, Scaling kScaling, int kVec, int kTokens>
__global__ void __launch_bounds__(kThreads, 2) few_down_kernel(const Params p) {
  if (!has_code<W>()) return;
  constexpr int kDepth = kVec == kWidestVec<__nv_fp8_e4m3> ? 2 : 3;  // loads in flight, per row
  constexpr int kStep = kDepth * kLanes * kVec;                      // of K, per warp
  extern __shared__ int32_t ids[];
  const Chunk chunk = chunk_of_block<kTokens>(p);
  copy_ids(p, chunk, ids);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warp = static_cast<int>(threadIdx.x) / kLanes;
  const int warps_per_expert = max(1, kWarps / chunk.num_pairs);
  const int num_walks = kWarps / warps_per_expert;  // exact: warps_per_expert is 1, 2, 4 or 8
  const int64_t first_k = warp % warps_per_expert * kStep + lane * kVec;
  const int64_t k_stride = int64_t{warps_per_expert} * kStep;
  ExpertWalk<kTokens> walk(ids, chunk, p.top_k, warp / warps_per_expert, num_walks);

  const int64_t first_column = int64_t{blockIdx.x} * kColumns;
  const int64_t last_column = p.hidden - 1;
  const auto row_of = [&](int column) {  // columns past the end repeat the last one
    return walk.expert() * p.hidden + min(first_column + column, last_column);
  };
  Packed<W, kVec> w[kDepth][kColumns];
  const auto load_weights = [&](int64_t k) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const W* row = static_cast<const W*>(p.down) + row_of(c) * p.inner;
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        const int64_t at = k + d * kLanes * kVec;
        if (at < p.inner) w[d][c] = load_packed<kVec>(row + at);
      }
    }
  };
  if (walk.has_expert()) load_weights(first_k);
  trigger_dependent_launch();
  wait_for_previous_kernel();

  const int64_t chunk_pairs = chunk.first_token * p.top_k;  // pairs before this chunk
  const T* product = static_cast<const T*>(p.product) + chunk_pairs * p.inner;
  float sums[kColumns * kTokens] = {};
  while (walk.has_expert()) {
    float scales[kColumns];
    const float* column_scales[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      scales[c] = kScaling == Scaling::kRows ? p.down_scales.values[row_of(c)] : 1.0F;
      if constexpr (kScaling == Scaling::kBlocks) {
        column_scales[c] = p.down_scales.of_matrix(walk.expert(), p.hidden)
                               .of_row(min(first_column + c, last_column));
      }
    }
    for (int64_t k = first_k; k < p.inner;) {
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        const int pair = walk.pair_of(t);
        if (pair < 0) continue;
        const float weight = p.weights[chunk_pairs + pair];
#pragma unroll
        for (int d = 0; d < kDepth; ++d) {
          const int64_t at = k + d * kLanes * kVec;
          if (at >= p.inner) continue;
          float numbers[kVec];
          load_floats(product + pair * p.inner + at, numbers);
#pragma unroll
          for (int c = 0; c < kColumns; ++c) {
            float scale = scales[c];
            if constexpr (kScaling == Scaling::kBlocks)
              scale = column_scales[c][at / kScaleColumns];
            float& sum = sums[c * kTokens + t];
            sum = fmaf(weight * scale, dot<W>(w[d][c], numbers), sum);
          }
        }
      }
      k += k_stride;
      if (k < p.inner) load_weights(k);
    }
    walk.advance();
    if (walk.has_expert()) load_weights(first_k);
  }

  __shared__ float parts[kWarps][kColumns * kTokens];
  const float sum = warp_scatter_sums(sums);
  if (lane < kColumns * kTokens) parts[warp][lane] = sum;
  __syncthreads();
  const auto item = static_cast<int>(threadIdx.x);
  if (item >= kColumns * kTokens) return;
  const int token = item % kTokens;
  const int64_t column = first_column + item / kTokens;
  if (token >= chunk.num_tokens || column >= p.hidden) return;
  T* out = static_cast<T*>(p.out) + (chunk.first_token + token) * p.hidden + column;
  float total = p.adds ? to_float(*out) : 0.0F;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) total += parts[i][item];
  if (p.down_bias != nullptr) {
    for (int pair = token * p.top_k; pair < (token + 1) * p.top_k; ++pair) {
      const float bias =
          to_float(static_cast<const T*>(p.down_bias)[ids[pair] * p.hidden + column]);
      total = fmaf(p.weights[chunk_pairs + pair], bias, total);
    }
  }
  *out = from_float<T>(total);
}

template <typename T, typename W, Scaling kScaling, int kVec, int kTokens>
void launch_gate_up(const LaunchContext& context, const Params& p) {
  LaunchShape shape =
      context.shape(ceil_div(p.inner, kWarps), kThreads, std::min(kTokens, p.num_tokens) * p.top_k);
  shape.grid.z = static_cast<unsigned>(ceil_div(p.num_tokens, kTokens));
  shape.shared_bytes = static_cast<size_t>(kTokens * p.top_k) * sizeof(int32_t);
  QUIRE_LAUNCH(*context.stream, (few_gate_up_kernel<T, W, kScaling, kVec, kTokens>), shape, p);
}

template <typename T, typename W, Scaling kScaling, int kVec, int kTokens>
void launch_down(const LaunchContext& context, const Params& p) {
  LaunchShape shape = context.shape(ceil_div(p.hidden, kColumns), kThreads);
  shape.grid.z = static_cast<unsigned>(ceil_div(p.num_tokens, kTokens));
  shape.shared_bytes = static_cast<size_t>(kTokens * p.top_k) * sizeof(int32_t);
  QUIRE_LAUNCH(*context.stream, (few_down_kernel<T, W, kScaling, kVec, kTokens>), shape, p);
}

struct Operand {
  DType dtype;
  int64_t scale_rows;
};

// Calls body(type of the weights, scaling, elements per load, tokens per chunk). E4M3 weights
// always have whole vectors.
template <typename T, typename Body>
void with_variant(const Operand& weights, bool has_vectors, int num_tokens, const Body& body) {
  using std::integral_constant;
  constexpr std::type_identity<T> type;
  constexpr ScalingConstant<Scaling::kNone> unscaled;
  const auto with_tokens = [&](auto weight_type, auto scaling, auto vec) {
    if (num_tokens == 1) return body(weight_type, scaling, vec, integral_constant<int, 1>());
    body(weight_type, scaling, vec, integral_constant<int, kFewTokens>());
  };
  if (weights.dtype == DType::kF8E4M3) {
    constexpr std::type_identity<__nv_fp8_e4m3> fp8;
    constexpr integral_constant<int, kWidestVec<__nv_fp8_e4m3>> vec;
    if (weights.scale_rows > 0) return with_tokens(fp8, ScalingConstant<Scaling::kBlocks>(), vec);
    return with_tokens(fp8, ScalingConstant<Scaling::kRows>(), vec);
  }
  if (has_vectors) return with_tokens(type, unscaled, integral_constant<int, kWidestVec<T>>());
  body(type, unscaled, integral_constant<int, 1>(), integral_constant<int, kFewTokens>());
}

Params params_of(const ExpertMatrices& matrices, const ExpertsCall& call,
                 const TensorView& product) {
  Params p = {};
  p.x = call.x.data;
  p.ids = call.ids.as<const int32_t>();
  p.weights = call.weights.as<const float>();
  p.gate_up = matrices.gate_up.data;
  p.gate_up_scales = block_scales(matrices.gate_up_scales.as<const float>(),
                                  matrices.gate_up_scale_rows, matrices.gate_up.shape[2]);
  p.gate_up_bias = matrices.gate_up_bias.data;
  p.down = matrices.down.data;
  p.down_bias = matrices.down_bias.data;
  p.down_scales = block_scales(matrices.down_scales.as<const float>(), matrices.down_scale_rows,
                               matrices.down.shape[2]);
  p.product = product.data;
  p.out = call.out.data;
  p.num_tokens = static_cast<int>(call.x.shape[0]);
  p.top_k = static_cast<int>(call.ids.shape[1]);
  p.hidden = matrices.gate_up.shape[2];
  p.inner = matrices.down.shape[2];
  p.activation = call.activation;
  p.adds = call.adds;
  return p;
}

// Whether each row of the weights and of their input is aligned to 16 bytes.
bool has_vectors(const TensorView& weights, const TensorView& input) {
  const auto row_bytes = static_cast<size_t>(weights.shape[2]) * dtype_bytes(weights.dtype);
  return row_bytes % 16 == 0 && is_aligned({weights.data, input.data}, 16);
}

}  // namespace

void run_few_experts(const LaunchContext& context, const ExpertMatrices& matrices,
                     const ExpertsCall& call, const TensorView& product) {
  const Params p = params_of(matrices, call, product);
  with_float_type(call.x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    with_variant<T>({matrices.gate_up.dtype, matrices.gate_up_scale_rows},
                    has_vectors(matrices.gate_up, call.x), p.num_tokens,
                    [&](auto weight_type, auto scaling, auto vec, auto tokens) {
                      using W = typename decltype(weight_type)::type;
                      launch_gate_up<T, W, scaling.value, vec.value, tokens.value>(context, p);
                    });
    with_variant<T>({matrices.down.dtype, matrices.down_scale_rows},
                    has_vectors(matrices.down, product), p.num_tokens,
                    [&](auto weight_type, auto scaling, auto vec, auto tokens) {
                      using W = typename decltype(weight_type)::type;
                      launch_down<T, W, scaling.value, vec.value, tokens.value>(context, p);
                    });
  });
}

}  // namespace quire::cuda
