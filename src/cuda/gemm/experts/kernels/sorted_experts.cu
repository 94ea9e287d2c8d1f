// The steps around the grouped products of many tokens: sorting the pairs by expert, and adding up
// the experts' outputs.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/gemm/experts/expert_kernels.h"

namespace quire::cuda {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kSortThreads = kMaxExperts;  // one per expert
static_assert(kSortThreads == kWarpLanes * kWarpLanes);

// The inclusive prefix sum over the lanes of a warp.
__device__ __forceinline__ int warp_prefix_sum(int x) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarpLanes;
#pragma unroll
  for (int distance = 1; distance < kWarpLanes; distance *= 2) {
    const int before = __shfl_up_sync(0xFFFFFFFFU, x, distance);
    if (lane >= distance) x += before;
  }
  return x;
}

// The sum over all threads before this one. of_warp: kWarpLanes ints in shared memory, which no
// other call uses.
__device__ __forceinline__ int sum_before(int x, int* of_warp) {
  const auto lane = static_cast<int>(threadIdx.x) % kWarpLanes;
  const auto warp = static_cast<int>(threadIdx.x) / kWarpLanes;
  const int inclusive = warp_prefix_sum(x);
  if (lane == kWarpLanes - 1) of_warp[warp] = inclusive;
  __syncthreads();
  const int warps = warp_prefix_sum(of_warp[lane]);
  const int before_warp = __shfl_sync(0xFFFFFFFFU, warps, max(warp - 1, 0));
  return inclusive - x + (warp > 0 ? before_warp : 0);
}

// Calls visit(pair, its expert) for every pair, in any order. A thread loads several ids at once,
// because otherwise most of the time would be spent waiting for each load.
template <typename Visit>
__device__ __forceinline__ void for_each_pair(const int32_t* ids, int num_pairs,
                                              const Visit& visit) {
  constexpr int kBatch = 8;
  for (int first = static_cast<int>(threadIdx.x); first < num_pairs;
       first += kBatch * kSortThreads) {
    int32_t experts[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int pair = first + i * kSortThreads;
      if (pair < num_pairs) experts[i] = ids[pair];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int pair = first + i * kSortThreads;
      if (pair < num_pairs) visit(pair, experts[i]);
    }
  }
}

// The places of tiles in the list.
//
// Tiles of experts with several tiles, such as shared experts, read most of their weights from the
// L2, and tiles of experts with one tile read theirs from memory. One kind after the other would
// leave first the L2 and then the memory idle, so both kinds are spread over the list evenly. Each
// kind keeps its order.
struct TileOrder {
  int num_single;    // tiles of experts with one tile
  int num_repeated;  // tiles of experts with several

  __device__ __forceinline__ int of_single(int idx) const {
    return idx * (num_single + num_repeated) / num_single;
  }
  __device__ __forceinline__ int of_repeated(int idx) const {
    return ceil_div((idx + 1) * (num_single + num_repeated), num_repeated) - 1;
  }
};

// One thread block: a counting sort, which reads the ids twice.
__global__ void __launch_bounds__(kSortThreads)
    sort_pairs_kernel(const int32_t* ids, int num_pairs, int top_k, int tile_rows,
                      SortedPairs sorted) {
  __shared__ int counts[kSortThreads];  // the number of each expert's pairs; then its next row
  __shared__ int sums[3][kWarpLanes];
  __shared__ TileOrder order;
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const auto expert = static_cast<int>(threadIdx.x);
  counts[expert] = 0;
  __syncthreads();
  for_each_pair(ids, num_pairs, [&](int /*pair*/, int of_pair) { atomicAdd(&counts[of_pair], 1); });
  __syncthreads();
  const int count = counts[expert];
  const int num_tiles = ceil_div(count, tile_rows);
  const int first_row = sum_before(count, sums[0]);
  const int num_single = num_tiles == 1 ? 1 : 0;
  const int first_single = sum_before(num_single, sums[1]);
  const int first_repeated = sum_before(num_tiles - num_single, sums[2]);
  if (expert == kSortThreads - 1) {
    order = {first_single + num_single, first_repeated + num_tiles - num_single};
    *sorted.num_tiles = order.num_single + order.num_repeated;
  }
  counts[expert] = first_row;
  __syncthreads();
  for (int i = 0; i < num_tiles; ++i) {
    const int at =
        num_single == 1 ? order.of_single(first_single) : order.of_repeated(first_repeated + i);
    const int row = first_row + i * tile_rows;
    sorted.tiles[at] = {expert, row, min(row + tile_rows, first_row + count), num_single};
  }
  for_each_pair(ids, num_pairs, [&](int pair, int of_pair) {
    const int row = atomicAdd(&counts[of_pair], 1);
    sorted.tokens[row] = pair / top_k;
    sorted.rows[pair] = row;
  });
}

// One thread block per token.
template <typename T>
__global__ void combine_kernel(const T* y, const int32_t* rows, const float* weights, int top_k,
                               int64_t width, bool adds, T* out) {
  constexpr int kVec = kWidestVec<T>;
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t first_pair = int64_t{blockIdx.x} * top_k;
  weights += first_pair;
  out += blockIdx.x * width;
  for (int64_t i = int64_t{threadIdx.x} * kVec; i < width; i += int64_t{blockDim.x} * kVec) {
    float sums[kVec] = {};
    if (adds) load_floats(out + i, sums);
    for (int j = 0; j < top_k; ++j) {
      float numbers[kVec];
      const int64_t row = rows == nullptr ? first_pair + j : rows[first_pair + j];
      load_floats(y + row * width + i, numbers);
#pragma unroll
      for (int e = 0; e < kVec; ++e) sums[e] = fmaf(weights[j], numbers[e], sums[e]);
    }
    Vec<T, kVec> result;
#pragma unroll
    for (int e = 0; e < kVec; ++e) result.v[e] = from_float<T>(sums[e]);
    store_vec(out + i, result);
  }
}

template <typename T>
void combine(const LaunchContext& context, const TensorView& y, const int32_t* rows,
             const TensorView& weights, bool adds, const TensorView& out) {
  constexpr int64_t kCombineThreads = 256;
  QUIRE_LAUNCH(*context.stream, combine_kernel<T>, context.shape(out.shape[0], kCombineThreads),
               y.as<const T>(), rows, weights.as<const float>(), static_cast<int>(weights.shape[1]),
               out.shape[1], adds, out.as<T>());
}

}  // namespace

void run_sort_pairs(const LaunchContext& context, const TensorView& ids, int tile_rows,
                    const SortedPairs& sorted) {
  QUIRE_LAUNCH(*context.stream, sort_pairs_kernel, context.shape(1, kSortThreads),
               ids.as<const int32_t>(), static_cast<int>(ids.shape.num_elements()),
               static_cast<int>(ids.shape[1]), tile_rows, sorted);
}

void run_combine(const LaunchContext& context, const TensorView& y, const int32_t* rows,
                 const TensorView& weights, bool adds, const TensorView& out) {
  if (out.dtype == DType::kF16) return combine<__half>(context, y, rows, weights, adds, out);
  combine<__nv_bfloat16>(context, y, rows, weights, adds, out);
}

}  // namespace quire::cuda
