// Loads, keys and checks of logits, and reductions over a thread block.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "base/numbers.h"
#include "cuda/sample/sample_kernels.h"

namespace quire::cuda {

inline constexpr int32_t kNoToken = 0x7FFFFFFF;

__device__ __forceinline__ float minus_infinity() {
  return __int_as_float(static_cast<int>(0xFF800000U));
}

// Maps floats to unsigned integers of the same order; both zeros map to one value.
__device__ __forceinline__ uint32_t ordered_bits(float x) {
  const uint32_t bits = __float_as_uint(x + 0.0F);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000U;
}
__device__ __forceinline__ float from_ordered_bits(uint32_t bits) {
  return __uint_as_float((bits >> 31) != 0 ? bits & 0x7FFFFFFFU : ~bits);
}

// Larger logits have larger keys; among equal logits, smaller ids have larger keys. Keys are unique
// and never 0.
__device__ __forceinline__ uint64_t token_key(float logit, int32_t token_id) {
  return static_cast<uint64_t>(ordered_bits(logit)) << 32 | ~static_cast<uint32_t>(token_id);
}
__device__ __forceinline__ float logit_of(uint64_t key) {
  return from_ordered_bits(static_cast<uint32_t>(key >> 32));
}
__device__ __forceinline__ int32_t token_of(uint64_t key) {
  return static_cast<int32_t>(~static_cast<uint32_t>(key));
}

// The token's weight in the row's distribution.
__device__ __forceinline__ double weight_of(const RowCut& cut, float logit, int32_t id) {
  if (token_key(logit, id) < cut.key) return 0;
  return exp((static_cast<double>(logit) - static_cast<double>(cut.largest)) * cut.inverse);
}

// Four neighbouring logits; beyond the row they are -infinity.
struct Quad {
  float x[4];
};

// Row i of the logits of tokens [first_id, first_id + size). Quad q has the tokens from 4 * q on.
struct LogitsRow {
  const float* logits;
  int32_t first_id;
  int32_t end_id;
  bool is_aligned;  // quads are whole and begin at multiples of 16 bytes

  __device__ LogitsRow(const float* first, int32_t size, int64_t i, int32_t from_id = 0)
      : logits(first + i * size),
        first_id(from_id),
        end_id(from_id + size),
        is_aligned(size % 4 == 0 && from_id % 4 == 0 &&
                   reinterpret_cast<uintptr_t>(first) % 16 == 0) {}

  __device__ int32_t first_quad() const { return first_id / 4; }
  __device__ int32_t end_quad() const { return ceil_div(end_id, 4); }

  // q >= first_quad()
  __device__ __forceinline__ Quad quad(int32_t q) const {
    Quad quad;
    if (is_aligned && q < end_quad()) {
      const float4 four = reinterpret_cast<const float4*>(logits)[q - first_quad()];
      quad.x[0] = four.x;
      quad.x[1] = four.y;
      quad.x[2] = four.z;
      quad.x[3] = four.w;
    } else {
      for (int j = 0; j < 4; ++j) {
        const int32_t id = q * 4 + j;
        quad.x[j] = id >= first_id && id < end_id ? logits[id - first_id] : minus_infinity();
      }
    }
    return quad;
  }
};

// The largest logit so far, and whether any logit is NaN. Both decide whether a row's logits are
// valid. NaN never compares greater.
struct LargestLogit {
  float logit = minus_infinity();
  int32_t token_id = kNoToken;  // the lowest with that logit
  int32_t nan_id = kNoToken;    // the lowest whose logit is NaN

  // Adds one logit. Ids ascend from call to call.
  __device__ __forceinline__ void add(float x, int32_t id) {
    if (x > logit) {
      logit = x;
      token_id = id;
    }
    if (x != x) nan_id = min(nan_id, id);
  }
  // Adds the logit, token_id and nan_id of another LargestLogit. Its ids may be in any order.
  __device__ __forceinline__ void merge(float other, int32_t id, int32_t other_nan) {
    if (other > logit || (other == logit && id < token_id)) {
      logit = other;
      token_id = id;
    }
    nan_id = min(nan_id, other_nan);
  }
  __device__ RowStatus status() const {
    if (nan_id != kNoToken) return RowStatus::kNan;
    if (logit == -minus_infinity()) return RowStatus::kInfinite;
    return logit == minus_infinity() ? RowStatus::kNoneFinite : RowStatus::kOk;
  }
};

// Whether `pass` samples logits row i.
__device__ __forceinline__ bool is_of_pass(const SampleCall& call, int i, SamplePass pass) {
  return call.rows == nullptr || call.rows[i].pass == pass;
}

// State of the sequence at logits row i, as if the drafts before the row had been accepted.
__device__ __forceinline__ SlotState state_at(const SlotTables& tables, const SampleCall& call,
                                              int i) {
  SlotState state = tables.states[call.slots[i]];
  state.position += call.offsets[i];
  state.num_output += call.offsets[i];
  return state;
}

// Runs on one thread. launch_commit() decides whether the token is kept.
__device__ inline void store_result(RowStatus status, int64_t position, int32_t token_id,
                                    int32_t detail, RowResult& result) {
  result = {.token_id = status == RowStatus::kOk ? token_id : 0,
            .status = status,
            .position = position,
            .detail = detail,
            .num_tokens = 0,
            .pad = {}};
}

__device__ inline void store_padding(RowResult& result) {
  store_result(RowStatus::kPadding, 0, 0, 0, result);
}

// Calls use(q, quad) for quads [first, end) of a row. Each thread visits every blockDim.x-th quad
// in ascending order, with kInFlight loads at once.
template <int kInFlight = 4, typename Use>
__device__ __forceinline__ void for_each_quad(const LogitsRow& row, int32_t first, int32_t end,
                                              Use use) {
  const auto step = static_cast<int32_t>(blockDim.x);
  int32_t q = first + static_cast<int32_t>(threadIdx.x);
  for (; q + (kInFlight - 1) * step < end; q += kInFlight * step) {
    Quad quads[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) quads[i] = row.quad(q + i * step);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) use(q + i * step, quads[i]);
  }
  for (; q < end; q += step) use(q, row.quad(q));
}

// One thread of each of `count` thread blocks calls this, after the block has written its part of a
// row's result. Returns true for the last of them, which may read all parts. The counter is 0
// before and after.
__device__ inline bool is_last_to_arrive(uint32_t& arrivals, int count) {
  const auto last = static_cast<uint32_t>(count) - 1;
  __threadfence();
  if (atomicInc(&arrivals, last) != last) return false;
  __threadfence();
  return true;
}

// Reductions over a one-dimensional thread block of whole warps. Every thread gets the result. Each
// ends with a barrier, so that another may follow directly.
template <typename T, typename Combine>
__device__ T block_reduce(T x, Combine combine) {
  __shared__ T warp_values[32];
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int distance = 16; distance > 0; distance /= 2) {
    x = combine(x, T::shuffle(x, distance));
  }
  if (threadIdx.x % 32 == 0) warp_values[threadIdx.x / 32] = x;
  __syncthreads();
  x = warp_values[0];
  for (int w = 1; w < num_warps; ++w) x = combine(x, warp_values[w]);
  __syncthreads();
  return x;
}

template <typename T>
struct Scalar {
  T value;
  __device__ static Scalar shuffle(Scalar x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.value, distance)};
  }
};

__device__ inline float block_max(float x) {
  return block_reduce(Scalar<float>{x},
                      [](auto a, auto b) { return Scalar<float>{fmaxf(a.value, b.value)}; })
      .value;
}
__device__ inline double block_sum(double x) {
  return block_reduce(Scalar<double>{x},
                      [](auto a, auto b) { return Scalar<double>{a.value + b.value}; })
      .value;
}
__device__ inline int block_sum(int x) {
  return block_reduce(Scalar<int>{x}, [](auto a, auto b) { return Scalar<int>{a.value + b.value}; })
      .value;
}

struct SharedLargestLogit {
  float logit;
  int32_t token_id, nan_id;
  __device__ static SharedLargestLogit shuffle(SharedLargestLogit x, int distance) {
    return {__shfl_xor_sync(0xFFFFFFFFU, x.logit, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.token_id, distance),
            __shfl_xor_sync(0xFFFFFFFFU, x.nan_id, distance)};
  }
};
__device__ inline LargestLogit block_largest(const LargestLogit& mine) {
  const SharedLargestLogit all =
      block_reduce(SharedLargestLogit{mine.logit, mine.token_id, mine.nan_id}, [](auto a, auto b) {
        LargestLogit merged;
        merged.merge(a.logit, a.token_id, a.nan_id);
        merged.merge(b.logit, b.token_id, b.nan_id);
        return SharedLargestLogit{merged.logit, merged.token_id, merged.nan_id};
      });
  LargestLogit largest;
  largest.merge(all.logit, all.token_id, all.nan_id);
  return largest;
}
// The largest logit of quads [first, end).
__device__ inline LargestLogit block_largest(const LogitsRow& row, int32_t first, int32_t end) {
  LargestLogit mine;
  for_each_quad(row, first, end, [&](int32_t q, const Quad& quad) {
#pragma unroll
    for (int j = 0; j < 4; ++j) mine.add(quad.x[j], q * 4 + j);
  });
  return block_largest(mine);
}

}  // namespace quire::cuda
