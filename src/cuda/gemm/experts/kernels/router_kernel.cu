// The router of one or two tokens in one kernel: the norm of the residual, the product with the
// router's matrix, and the choice of the experts. These are so little work that three kernels would
// mostly wait for each other.
//
// The grid is one cluster. Its thread blocks divide the router's rows (one per expert). They load
// their weights before they wait for the previous kernel; weights that do not fit in registers are
// requested into the L2. Each thread block then computes the norm of all tokens in its shared
// memory, so that only logits pass between thread blocks. The warps of a thread block split K, as
// in skinny_gemm.cu. Each logit is stored in the shared memory of the thread block that chooses the
// experts of its token. The barriers and the data that each protects:
//
//   wait_for_previous_kernel   the residual and delta, or x
//   __syncthreads              the sums of squares; the normed rows; the warps' parts of the logits
//   wait_in_cluster            other thread blocks have started, so their memory may be written
//   sync_cluster_memory        the logits; and all thread blocks have read the residual, which then
//                              is overwritten by the sum
#include <algorithm>

#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/device/tensor_core.cuh"
#include "cuda/gemm/experts/kernels/router_kernel.h"
#include "cuda/ops/routing.cuh"

namespace quire::cuda {
namespace {

constexpr int kBlocks = 8;        // of the cluster; every Hopper device supports this
constexpr int kVec = 8;           // elements of a 16-byte access
constexpr int kChunk = 4 * kVec;  // elements of K per step of a warp
constexpr int kHalfRows = 8;      // rows of w in half of an instruction
constexpr int kMostHalves = 2;    // per thread block
// An H200 takes 0.4 to 1.2 us longer with 16 warps, whose weights do not stay in registers.
constexpr int kWarps = 8;
constexpr int kThreads = kWarps * 32;
static_assert(kMostRouterTokens <= 8, "an instruction multiplies 8 rows of x");
static_assert(kMostRouterTokens <= kBlocks, "a thread block chooses the experts of one token");

// T: the type of the activations and of the router's matrix.
template <typename T>
struct Params {
  T* residual;  // null: x is given
  const T* delta;
  const float* norm;
  const float* sum_scale;  // ResidualNorm::scale
  float eps;
  T* x;        // [num_tokens, k]
  const T* w;  // [num_rows, k]
  const T* w_bias;
  int num_tokens;
  int num_rows;
  int k;
  ExpertRouting routing;
  const float* bias;
  int32_t* ids;
  float* weights;
};

// Elements between two tokens in shared memory. 64 bytes more than a multiple of 128, so that
// the lanes of two tokens read different banks.
__host__ __device__ constexpr int row_stride(int k) {
  return (k + 63) / 64 * 64 + 32;
}

// A thread block's part of the columns of the residual and of x, in vectors.
struct ColumnPart {
  int first;
  int end;
};
__host__ __device__ constexpr int vectors_per_part(int k) {
  return (k / kVec + kBlocks - 1) / kBlocks;
}

// The warps that compute a token's norm, and the elements that they process at a time.
__host__ __device__ constexpr int warps_per_token(int num_tokens) {
  return kWarps / num_tokens;
}
__host__ __device__ constexpr int norm_step(int num_tokens) {
  return warps_per_token(num_tokens) * 32 * kVec;
}

// Offsets in dynamic shared memory. The rows of x come first. It is small with one token, so that
// an SM need not give up L1 cache for it.
struct SharedLayout {
  int parts;  // F32 [warps][num_tokens][rows of w]: the parts of the logits
  int sums;   // [num_tokens][the thread block's columns]: the residual with delta
  int norm;   // F32 [k]: the norm's weights; empty if threads keep them in registers
  int num_bytes;
};
__host__ __device__ constexpr SharedLayout shared_layout(int k, int num_tokens, int num_rows) {
  SharedLayout layout = {};
  layout.parts = num_tokens * row_stride(k) * 2;
  layout.sums = layout.parts + kWarps * num_tokens * num_rows * 4;
  layout.norm = layout.sums + num_tokens * vectors_per_part(k) * 16;
  layout.num_bytes = layout.norm + (norm_step(num_tokens) < k ? k * 4 : 0);
  return layout;
}

// The norm of the token of a thread's warp. Constructed before the wait.
template <typename T>
struct TokenNorm {
  int num_warps;  // of the token
  int token;
  int first;  // the thread's first element
  int step;
  bool has_token;
  Vec<float, 4> first_weights[2];

  __device__ __forceinline__ TokenNorm(const Params<T>& p, float* norm) {
    const int thread = static_cast<int>(threadIdx.x);
    num_warps = warps_per_token(p.num_tokens);
    step = norm_step(p.num_tokens);
    token = thread / (num_warps * 32);
    first = (thread - token * num_warps * 32) * kVec;
    has_token = token < p.num_tokens;
    if (p.residual == nullptr) return;
    if (first < p.k) {
      first_weights[0] = load_vec<4>(p.norm + first);
      first_weights[1] = load_vec<4>(p.norm + first + 4);
    }
    if (step >= p.k) return;
    for (int i = thread * 4; i < p.k; i += kThreads * 4) {
      store_vec(norm + i, load_vec<4>(p.norm + i));
    }
  }

  // Writes the rows to shared memory, and this thread block's columns to p.x. Ends with a barrier.
  __device__ __forceinline__ void run(const Params<T>& p, T* rows, const float* norm, T* sums,
                                      const ColumnPart& part) const {
    __shared__ float squares_of_warp[kWarps];
    const int thread = static_cast<int>(threadIdx.x);
    T* const row = rows + token * row_stride(p.k);
    const int64_t offset = int64_t{token} * p.k;
    if (p.residual == nullptr) {
      for (int i = first; has_token && i < p.k; i += step) {
        store_vec(row + i, load_vec<kVec>(p.x + offset + i));
      }
      __syncthreads();
      return;
    }
    float squares = 0;
    for (int i = first; has_token && i < p.k; i += step) {
      Vec<T, kVec> value = load_vec<kVec>(p.residual + offset + i);
      if (p.delta != nullptr) {
        const Vec<T, kVec> add = load_vec<kVec>(p.delta + offset + i);
        const float factor = p.sum_scale == nullptr ? 1.0F : *p.sum_scale;
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          value.v[j] = from_float<T>((to_float(value.v[j]) + to_float(add.v[j])) * factor);
        }
        const int vector = i / kVec;
        if (vector >= part.first && vector < part.end) {
          store_vec(sums + (token * (part.end - part.first) + vector - part.first) * kVec, value);
        }
      }
#pragma unroll
      for (int j = 0; j < kVec; ++j) squares += to_float(value.v[j]) * to_float(value.v[j]);
      store_vec(row + i, value);
    }
    squares = warp_sum(squares);
    if (thread % 32 == 0) squares_of_warp[thread / 32] = squares;
    __syncthreads();
    if (has_token) {
      float total = 0;
      for (int i = 0; i < num_warps; ++i) total += squares_of_warp[token * num_warps + i];
      const float scale = 1.0F / sqrtf(total / static_cast<float>(p.k) + p.eps);
      for (int i = first; i < p.k; i += step) {
        const bool is_first = i == first;
        const Vec<float, 4> weights[2] = {is_first ? first_weights[0] : load_vec<4>(norm + i),
                                          is_first ? first_weights[1] : load_vec<4>(norm + i + 4)};
        Vec<T, kVec> value = load_vec<kVec>(row + i);
#pragma unroll
        for (int j = 0; j < kVec; ++j) {
          value.v[j] = from_float<T>(to_float(value.v[j]) * scale * weights[j / 4].v[j % 4]);
        }
        store_vec(row + i, value);
        const int vector = i / kVec;
        if (vector >= part.first && vector < part.end) store_vec(p.x + offset + i, value);
      }
    }
    __syncthreads();
  }
};

// A warp's part of the product of the thread block's rows of w, of which there are at most 8 *
// kHalves. Each instruction multiplies two halves.
template <typename T, int kHalves, int kDepth>
struct RouterWarp {
  static constexpr int kTiles = (kHalves + 1) / 2;
  static constexpr int kRows = kTiles * 16;      // of a part
  static constexpr int kStep = kDepth * kChunk;  // of K, per warp

  int group;    // the lane's row of a half, and of x
  int quarter;  // the lane's quarter of a chunk
  const T* first_row;
  int num_rows;  // of the thread block
  uint4 w[kDepth][kHalves];
  float sums[kTiles][2][4] = {};  // two, because an instruction waits for the sums of the last one

  __device__ __forceinline__ RouterWarp(const T* rows, int count)
      : group(static_cast<int>(threadIdx.x) % 32 / 4),
        quarter(static_cast<int>(threadIdx.x) % 4),
        first_row(rows),
        num_rows(count) {}

  // at: the lane's first element of a step.
  __device__ __forceinline__ void load_weights(int at, int k) {
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
#pragma unroll
      for (int half = 0; half < kHalves; ++half) {
        const int row = half * kHalfRows + group;
        const int column = at + d * kChunk;
        w[d][half] = row < num_rows && column < k ? load_once(first_row + int64_t{row} * k + column)
                                                  : make_uint4(0, 0, 0, 0);
      }
    }
  }

  // rows: of x in shared memory.
  __device__ __forceinline__ void multiply(const T* rows, int num_tokens, int at, int k) {
    const T* const row = rows + group * row_stride(k);
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const int column = at + d * kChunk;
      uint4 x = make_uint4(0, 0, 0, 0);
      if (group < num_tokens && column < k) x = *reinterpret_cast<const uint4*>(row + column);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 upper = w[d][2 * tile];
        uint4 lower = make_uint4(0, 0, 0, 0);
        if constexpr (kHalves > 1) lower = w[d][2 * tile + 1];
        const uint32_t first[4] = {upper.x, lower.x, upper.y, lower.y};
        const uint32_t second[4] = {upper.z, lower.z, upper.w, lower.w};
        mma<T>(sums[tile][0], first, x.x, x.y);
        mma<T>(sums[tile][1], second, x.z, x.w);
      }
    }
  }

  // The lane holds these results of an instruction: rows group and group + 8 of tokens 2 * quarter
  // and 2 * quarter + 1.
  __device__ __forceinline__ void write_part(int num_tokens, float* part) const {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = quarter * 2 + i % 2;
        if (token >= num_tokens) continue;
        part[token * kRows + tile * 16 + i / 2 * 8 + group] = sums[tile][0][i] + sums[tile][1][i];
      }
    }
  }
};

// kPerLane: experts per lane of the warp that computes the scores. The registers leave room for
// thread blocks of the previous kernel.
template <typename T, int kHalves, int kDepth, int kPerLane>
__global__ void __launch_bounds__(kThreads, 2) router_kernel(const __grid_constant__ Params<T> p) {
  using Warp = RouterWarp<T, kHalves, kDepth>;
  extern __shared__ __align__(16) std::byte shared[];
  __shared__ float logits[kPerLane * 32];  // of the token with the thread block's rank
  __shared__ float choice_bias[kPerLane * 32];
  arrive_in_cluster();
  const auto rank = static_cast<int>(cluster_rank());
  const auto thread = static_cast<int>(threadIdx.x);
  const SharedLayout layout = shared_layout(p.k, p.num_tokens, Warp::kRows);
  T* const rows = reinterpret_cast<T*>(shared);
  auto* const parts = reinterpret_cast<float*>(shared + layout.parts);
  T* const sums = reinterpret_cast<T*>(shared + layout.sums);
  auto* const norm_weights = reinterpret_cast<float*>(shared + layout.norm);
  const int rows_per_block = (p.num_rows + kBlocks - 1) / kBlocks;
  const int first_row = rank * rows_per_block;
  const int num_rows = max(0, min(rows_per_block, p.num_rows - first_row));
  const T* const w = p.w + int64_t{first_row} * p.k;

  Warp warp(w, num_rows);
  int at = thread / 32 * Warp::kStep + warp.quarter * kVec;
  warp.load_weights(at, p.k);
  for (int i = thread * 64 + kWarps * Warp::kStep; i < p.k; i += kThreads * 64) {
    for (int row = 0; row < num_rows; ++row) {
      asm volatile("prefetch.global.L2 [%0];" ::"l"(w + int64_t{row} * p.k + i));
    }
  }
  const TokenNorm<T> norm(p, norm_weights);
  if (p.bias != nullptr) {
    for (int i = thread; i < p.routing.num_experts; i += kThreads) choice_bias[i] = p.bias[i];
  }
  trigger_dependent_launch();
  wait_for_previous_kernel();

  const int part_vectors = vectors_per_part(p.k);
  const ColumnPart part = {min(rank * part_vectors, p.k / kVec),
                           min((rank + 1) * part_vectors, p.k / kVec)};
  norm.run(p, rows, norm_weights, sums, part);
  for (;;) {
    warp.multiply(rows, p.num_tokens, at, p.k);
    at += kWarps * Warp::kStep;
    if (at - warp.quarter * kVec >= p.k) break;
    warp.load_weights(at, p.k);
  }
  const int part_size = p.num_tokens * Warp::kRows;
  static_assert(kMostRouterTokens * Warp::kRows <= kThreads);
  warp.write_part(p.num_tokens, parts + thread / 32 * part_size);
  __syncthreads();
  wait_in_cluster();
  if (const int row = thread % Warp::kRows; thread < part_size && row < num_rows) {
    float logit = 0;
#pragma unroll
    for (int j = 0; j < kWarps; ++j) logit += parts[j * part_size + thread];
    if (p.w_bias != nullptr) logit += to_float(p.w_bias[first_row + row]);
    const auto token = static_cast<uint32_t>(thread / Warp::kRows);
    store_in_cluster(address_in(shared_address(logits + first_row + row), token), logit);
  }
  __syncwarp();
  sync_cluster_memory();
  if (p.delta != nullptr) {
    const int width = part.end - part.first;
    // The last warps begin, because the first one computes the scores.
    for (int i = kThreads - 1 - thread; i < p.num_tokens * width; i += kThreads) {
      store_vec(p.residual + int64_t{i / width} * p.k + (part.first + i % width) * kVec,
                load_vec<kVec>(sums + i * kVec));
    }
  }
  if (rank >= p.num_tokens) return;
  const int first_id = rank * p.routing.num_per_token();
  routing::rank_experts<kPerLane, kThreads>(p.routing, logits,
                                            p.bias == nullptr ? nullptr : choice_bias,
                                            p.ids + first_id, p.weights + first_id);
}

template <typename T, int kHalves, int kDepth, int kPerLane>
void launch_router(const LaunchContext& context, const Params<T>& p) {
  constexpr int kRows = RouterWarp<T, kHalves, kDepth>::kRows;
  LaunchShape shape = context.shape(kBlocks, kThreads);
  shape.cluster = kBlocks;
  shape.shared_bytes = static_cast<size_t>(shared_layout(p.k, p.num_tokens, kRows).num_bytes);
  QUIRE_LAUNCH(*context.stream, (router_kernel<T, kHalves, kDepth, kPerLane>), shape, p);
}

template <typename T>
Params<T> params_of(const RouterCall& call, const RouterMatrix& matrix) {
  Params<T> p = {};
  if (call.norm) {
    p.residual = call.norm->residual.as<T>();
    p.delta = call.norm->delta.as<const T>();
    p.norm = call.norm->weight;
    p.sum_scale = call.norm->scale;
    p.eps = call.norm->eps;
  }
  p.x = call.x.as<T>();
  p.w = matrix.w.as<const T>();
  p.w_bias = matrix.bias.as<const T>();
  p.num_tokens = static_cast<int>(call.x.shape[0]);
  p.num_rows = static_cast<int>(matrix.w.shape[0]);
  p.k = static_cast<int>(matrix.w.shape[1]);
  p.routing = call.routing;
  p.bias = call.bias;
  p.ids = call.ids.as<int32_t>();
  p.weights = call.weights.as<float>();
  return p;
}

}  // namespace

bool router_kernel_takes(const LaunchContext& context, const RouterCall& call,
                         const RouterMatrix& matrix) {
  constexpr int64_t kMostWidth = 4096;
  constexpr int64_t kMostRows = int64_t{kBlocks} * kMostHalves * kHalfRows;
  const TensorView& w = matrix.w;
  const int64_t num_tokens = call.x.shape[0];
  const int64_t k = w.shape[1];
  if (context.stream->limits().compute_capability != 90 || call.x.dtype == DType::kF32 ||
      w.data == nullptr || w.dtype != call.x.dtype || w.shape[0] > kMostRows || num_tokens < 1 ||
      num_tokens > kMostRouterTokens || k % kVec != 0 || k > kMostWidth ||
      !is_aligned({call.x.data, w.data}, 16)) {
    return false;
  }
  if (const auto& norm = call.norm) {
    if (norm->weight == nullptr || norm->residual.data == call.x.data ||
        norm->delta.data == call.x.data ||
        !is_aligned({norm->residual.data, norm->delta.data, norm->weight}, 16)) {
      return false;
    }
  }
  return true;
}

void run_router_kernel(const LaunchContext& context, const RouterCall& call,
                       const RouterMatrix& matrix) {
  with_half_type(call.x.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Params<T> p = params_of<T>(call, matrix);
    if (p.num_rows <= 32) return launch_router<T, 1, 12, 1>(context, p);
    if (p.num_rows <= 64) return launch_router<T, 1, 12, 2>(context, p);
    launch_router<T, 2, 8, 4>(context, p);
  });
}

}  // namespace quire::cuda
