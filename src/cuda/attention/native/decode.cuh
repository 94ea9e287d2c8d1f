// Parts that the decode kernels share. In these kernels, warps process steps of positions in turn.
// At the end, a thread block combines its warps' rows, and the results of several thread blocks are
// merged.
#pragma once

#include "cuda/attention/native/rows.cuh"
#include "cuda/device/elements.cuh"

namespace quire::cuda::native {

inline constexpr int kUnitTokens = 16;  // positions that are copied together, all in one page

// The rows of all warps of a thread block, in shared memory.
template <int kWarps, int kRows, int kDim>
struct CombinedRows {
  static constexpr int kRowFloats = kDim + 8;  // padded, so that rows of one column are in
                                               // different banks
  static constexpr int kNumRows = kWarps * kRows;
  static constexpr int kBytes = kNumRows * (kRowFloats + 2) * static_cast<int>(sizeof(float));

  float* o;    // [warp][kRows][kRowFloats]
  float* max;  // [warp][kRows]
  float* sum;

  __device__ explicit CombinedRows(void* shared)
      : o(static_cast<float*>(shared)), max(o + kNumRows * kRowFloats), sum(max + kNumRows) {}

  __device__ float top(int row) const {
    float top = -INFINITY;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) top = fmaxf(top, max[warp * kRows + row]);
    return top;
  }
  // The weight of a warp's row relative to the common maximum.
  __device__ float weight(int warp, int row, float top) const {
    return top == -INFINITY ? 0.0F : exp2f(max[warp * kRows + row] - top);
  }
};

// Writes the combined rows: the output, or the partial results of one split.
template <typename Q, int kWarps, int kRows, int kDim>
__device__ inline void write_combined_rows(const Params& p, const Request& req,
                                           const CombinedRows<kWarps, kRows, kDim>& combined,
                                           int num_rows, int kv_head, int split, bool is_partial) {
  using Combined = CombinedRows<kWarps, kRows, kDim>;
  const int warp_id = static_cast<int>(threadIdx.x) / 32;
  const int lane_id = static_cast<int>(threadIdx.x) % 32;
  for (int row = warp_id; row < num_rows; row += kWarps) {
    const int token = req.first_token + row / p.group;
    const int head = kv_head * p.group + row % p.group;
    const float top = combined.top(row);
    float weights[kWarps];
    float sum = 0.0F;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      weights[w] = combined.weight(w, row, top);
      sum += weights[w] * combined.sum[w * kRows + row];
    }
    const float factor =
        finish_row_or_store_partial(p, token, head, split, top, sum, is_partial, lane_id == 0);
    for (int d = lane_id; d < p.head_dim_v; d += 32) {
      float x = 0.0F;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        x += weights[w] * combined.o[(w * kRows + row) * Combined::kRowFloats + d];
      }
      if (is_partial) {
        p.partial_out[partial_index(p, token, head, split) * p.head_dim_v + d] = x;
      } else {
        const int64_t at = (int64_t{token} * p.num_heads + head) * p.head_dim_v + d;
        static_cast<Q*>(p.out)[at] = from_float<Q>(x * factor);
      }
    }
  }
}

// Returns, to all threads of a block that has stored its partial results, whether it is the last of
// `num_parts` to do so. If it is, the results of the other blocks are visible to it. The counter is
// 0 before and after.
__device__ inline bool is_last_part(uint32_t* counter, int num_parts) {
  __syncthreads();
  bool is_last = false;
  if (threadIdx.x == 0) {
    const auto last = static_cast<uint32_t>(num_parts - 1);
    uint32_t before = 0;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(counter), "r"(last)
                 : "memory");
    is_last = before == last;
  }
  return __syncthreads_or(static_cast<int>(is_last)) != 0;
}

// Merges the partial results of a row into the output, after all parts have stored them. The whole
// warp calls this, and computes 128 columns at a time, four per lane.
template <typename Q>
__device__ inline void merge_row(const Params& p, int token, int head, int num_parts) {
  constexpr int kPartsAtOnce = 8;
  const float* partial = p.partial_out + partial_index(p, token, head, 0) * p.head_dim_v;
  Q* out = static_cast<Q*>(p.out) + (int64_t{token} * p.num_heads + head) * p.head_dim_v;
  const int own_d = static_cast<int>(threadIdx.x) % 32 * 4;
  float4 x[kPartsAtOnce];
  const auto load = [&](int first_part, int d) {
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const int64_t at = int64_t{first_part + i} * p.head_dim_v + d;
      const bool wanted = d < p.head_dim_v && first_part + i < num_parts;
      x[i] = wanted ? __ldcg(reinterpret_cast<const float4*>(partial + at)) : float4();
    }
  };
  load(0, own_d);  // in flight together with the weights
  const SplitWeights weights(p, token, head, num_parts);
  for (int first_d = 0; first_d < p.head_dim_v; first_d += 128) {
    const int d = first_d + own_d;
    float4 sum = {};
    for (int first_part = 0; first_part < num_parts; first_part += kPartsAtOnce) {
      if (first_d + first_part > 0) load(first_part, d);
#pragma unroll
      for (int i = 0; i < kPartsAtOnce; ++i) {
        const float weight = weights.of(first_part + i);
        sum.x += weight * x[i].x;
        sum.y += weight * x[i].y;
        sum.z += weight * x[i].z;
        sum.w += weight * x[i].w;
      }
    }
    if (d >= p.head_dim_v) continue;
    const float factor = weights.factor;
    store_vec(out + d, Vec<Q, 4>{from_float<Q>(sum.x * factor), from_float<Q>(sum.y * factor),
                                 from_float<Q>(sum.z * factor), from_float<Q>(sum.w * factor)});
  }
}

}  // namespace quire::cuda::native
