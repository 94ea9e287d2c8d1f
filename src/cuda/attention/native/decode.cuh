// Parts that the decode kernels share. In these kernels, warps process steps of positions in turn.
// At the end, a thread block combines its warps' rows.
#pragma once

#include "cuda/attention/native/rows.cuh"
#include "cuda/device/elements.cuh"

namespace quire::cuda::native {

inline constexpr int kUnitTokens = 16;  // positions that are copied together, all in one page

// Weights are relative to a maximum that may be this far (in log2 units) below the row's maximum,
// so that the accumulators are seldom rescaled. Weights up to 2^8 fit F16, and the difference
// cancels in the result.
inline constexpr float kMaxLag = 8.0F;

// The rows of a thread block, in shared memory. A team is one warp or several that share the
// columns of the same positions.
template <int kTeams, int kRows, int kDim>
struct CombinedRows {
  static constexpr int kRowFloats = kDim + 8;  // padded, so that rows of one column are in
                                               // different banks
  static constexpr int kNumRows = kTeams * kRows;
  static constexpr int kBytes = kNumRows * (kRowFloats + 2) * static_cast<int>(sizeof(float));

  float* o;    // [team][kRows][kRowFloats]
  float* max;  // [team][kRows]
  float* sum;

  __device__ explicit CombinedRows(void* shared)
      : o(static_cast<float*>(shared)), max(o + kNumRows * kRowFloats), sum(max + kNumRows) {}

  __device__ float top(int row) const {
    float top = -INFINITY;
#pragma unroll
    for (int team = 0; team < kTeams; ++team) top = fmaxf(top, max[team * kRows + row]);
    return top;
  }
  // The weight of a team's row relative to the common maximum.
  __device__ float weight(int team, int row, float top) const {
    return top == -INFINITY ? 0.0F : exp2f(max[team * kRows + row] - top);
  }
};

// Writes the combined rows: the output, or partial results, whose index partial_of(row) returns.
template <typename Q, int kTeams, int kRows, int kDim, class PartialOf>
__device__ inline void write_combined_rows(const Params& p, const Request& req,
                                           const CombinedRows<kTeams, kRows, kDim>& combined,
                                           int num_rows, int kv_head, PartialOf partial_of,
                                           bool is_partial) {
  using Combined = CombinedRows<kTeams, kRows, kDim>;
  const int warp_id = static_cast<int>(threadIdx.x) / 32;
  const int lane_id = static_cast<int>(threadIdx.x) % 32;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int row = warp_id; row < num_rows; row += num_warps) {
    const int query = token_of_row(p, req, row);
    const int token = req.first_token + query;
    const int head = kv_head * p.group + row - query * p.group;
    const float top = combined.top(row);
    float weights[kTeams];
    float sum = 0.0F;
#pragma unroll
    for (int team = 0; team < kTeams; ++team) {
      weights[team] = combined.weight(team, row, top);
      sum += weights[team] * combined.sum[team * kRows + row];
    }
    const int64_t partial_idx = partial_of(row);
    const float factor =
        finish_row_or_store_partial(p, head, partial_idx, top, sum, is_partial, lane_id == 0);
    for (int d = lane_id; d < p.head_dim_v; d += 32) {
      float x = 0.0F;
#pragma unroll
      for (int team = 0; team < kTeams; ++team) {
        x += weights[team] * combined.o[(team * kRows + row) * Combined::kRowFloats + d];
      }
      if (is_partial) {
        p.partial_out[partial_idx * p.head_dim_v + d] = x;
      } else {
        const int64_t at = (int64_t{token} * p.num_heads + head) * p.head_dim_v + d;
        static_cast<Q*>(p.out)[at] = from_float<Q>(x * factor);
      }
    }
  }
}

}  // namespace quire::cuda::native
