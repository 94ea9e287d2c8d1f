// The merge of a row's results when several thread blocks share its positions, in two stages:
//
// 1. The thread blocks of a cluster send each other their rows through shared memory. Each of them
//    merges its share of the columns.
// 2. Several clusters may share a request and KV head, because large clusters do not fill the GPU
//    (plan.cc). The thread blocks of equal rank merge their share through the L2: the last one to
//    arrive does it. With few rows, and before Hopper, each thread block is a cluster of one.
//
// The rows are divided into vectors of 4 columns.
#pragma once

#include "cuda/attention/native/decode.cuh"
#include "cuda/device/hopper.cuh"

namespace quire::cuda::native {

// The part of a request's vectors that a thread block merges. Rows are padded to kDim columns, so
// that a vector's row needs no division.
template <int kDim>
struct Share {
  static constexpr int kRowVectors = kDim / 4;
  int first, end;  // the thread block's vectors
  int size;        // vectors per thread block; the last ones may have fewer
  float inverse_size;

  __device__ Share(int num_rows, int rank, int num_members) {
    const int num_vectors = num_rows * kRowVectors;
    size = num_members == 1 ? num_vectors : (num_vectors + num_members - 1) / num_members;
    inverse_size = __frcp_rn(static_cast<float>(size));
    first = rank * size;
    end = min(num_vectors, first + size);
  }
  // The rank of the member that merges a vector. F32 represents the numbers exactly, and adding 0.5
  // keeps the quotient away from integers.
  __device__ int member(int vector) const {
    return static_cast<int>((static_cast<float>(vector) + 0.5F) * inverse_size);
  }
};

// The indices of the partial rows of a request and KV head. Clusters of the grid are numbered over
// the requests; the clusters of one request are consecutive.
class PartialRows {
 public:
  __device__ PartialRows(const Params& p, int first_cluster, int kv_head)
      : stride_(static_cast<int64_t>(gridDim.y) * p.max_rows),
        first_(first_cluster * stride_ + int64_t{kv_head} * p.max_rows) {}
  __device__ int64_t of(int part, int row) const { return first_ + part * stride_ + row; }

 private:
  int64_t stride_, first_;
};

// A row's largest logit, and the sum of its weights relative to that.
struct alignas(8) RowSum {
  float top = -INFINITY;  // in log2 units; -infinity: no positions
  float sum = 0.0F;
};

__device__ inline float weight_of(float max, float top) {
  return top == -INFINITY ? 0.0F : exp2f(max - top);
}

__device__ inline void add_weighted(float4& sum, float weight, const float4& x) {
  sum.x += weight * x.x;
  sum.y += weight * x.y;
  sum.z += weight * x.z;
  sum.w += weight * x.w;
}

// The rows that the members of a cluster send to one of them.
template <int kRows, int kDim>
struct Mailbox {
  float4 vectors[kRows * kDim / 4 + kMaxCluster];  // [member][Share::size]
  RowSum sums[kMaxCluster][kRows];
};

// Sends the combined rows to all members of the cluster. All of them must have started.
template <int kTeams, int kRows, int kDim>
__device__ inline void send_rows(const CombinedRows<kTeams, kRows, kDim>& combined,
                                 const Mailbox<kRows, kDim>& mailbox, const Share<kDim>& share,
                                 int num_rows, int rank, int num_members) {
  using Combined = CombinedRows<kTeams, kRows, kDim>;
  const int num_threads = static_cast<int>(blockDim.x);
  const uint32_t vectors = shared_address(mailbox.vectors + rank * share.size);
  constexpr int kRowVectors = Share<kDim>::kRowVectors;
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * kRowVectors; i += num_threads) {
    const int row = i / kRowVectors;
    const float* column = combined.o + row * Combined::kRowFloats + i % kRowVectors * 4;
    const float top = combined.top(row);
    float4 x = {};
#pragma unroll
    for (int team = 0; team < kTeams; ++team) {
      add_weighted(x, combined.weight(team, row, top),
                   *reinterpret_cast<const float4*>(column + team * kRows * Combined::kRowFloats));
    }
    const int member = share.member(i);
    const auto offset = static_cast<uint32_t>((i - member * share.size) * sizeof(float4));
    store_in_cluster(address_in(vectors + offset, static_cast<uint32_t>(member)), x);
  }
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * num_members; i += num_threads) {
    const int row = i % num_rows;
    const auto member = static_cast<uint32_t>(i / num_rows);
    const float top = combined.top(row);
    float sum = 0.0F;
#pragma unroll
    for (int team = 0; team < kTeams; ++team) {
      sum += combined.weight(team, row, top) * combined.sum[team * kRows + row];
    }
    store_in_cluster(address_in(shared_address(&mailbox.sums[rank][row]), member),
                     make_float2(top, sum));
  }
}

// Where a vector is in the output: its packed row, the row's token and head, and the first of its
// columns.
struct VectorPlace {
  int row, token, head, column;

  template <int kDim>
  __device__ VectorPlace(const Params& p, const Request& req, int kv_head, const Share<kDim>&,
                         int vector) {
    row = vector / Share<kDim>::kRowVectors;
    const int query = token_of_row(p, req, row);
    token = req.first_token + query;
    head = kv_head * p.group + row - query * p.group;
    column = vector % Share<kDim>::kRowVectors * 4;
  }
};

template <typename Q>
__device__ inline void write_vector(const Params& p, const VectorPlace& at, const RowSum& row,
                                    const float4& x) {
  const float factor = output_factor(p, at.head, row.top, row.sum);
  const int64_t index = (int64_t{at.token} * p.num_heads + at.head) * p.head_dim_v + at.column;
  store_vec(static_cast<Q*>(p.out) + index,
            Vec<Q, 4>{from_float<Q>(x.x * factor), from_float<Q>(x.y * factor),
                      from_float<Q>(x.z * factor), from_float<Q>(x.w * factor)});
}

// The first half of a barrier of the cluster, which merge_in_cluster() completes: no member may
// write the shared memory of another that has not started.
__device__ inline void start_in_cluster() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  arrive_in_cluster();
#endif
}

// Merges the thread block's share of the rows that it has received. Writes it to the output, or to
// the partial results of part `part` if is_partial.
template <typename Q, int kRows, int kDim>
__device__ inline void merge_received(const Params& p, const Request& req,
                                      const Mailbox<kRows, kDim>& mailbox, const Share<kDim>& share,
                                      int kv_head, int num_members, const PartialRows& partials,
                                      int part, bool is_partial) {
  for (int i = share.first + static_cast<int>(threadIdx.x); i < share.end;
       i += static_cast<int>(blockDim.x)) {
    const VectorPlace at(p, req, kv_head, share, i);
    if (at.column >= p.head_dim_v) continue;
    RowSum merged;
#pragma unroll
    for (int m = 0; m < kMaxCluster; ++m) {
      if (m < num_members) merged.top = fmaxf(merged.top, mailbox.sums[m][at.row].top);
    }
    float4 x = {};
#pragma unroll
    for (int m = 0; m < kMaxCluster; ++m) {
      if (m >= num_members) continue;
      const float weight = weight_of(mailbox.sums[m][at.row].top, merged.top);
      merged.sum += weight * mailbox.sums[m][at.row].sum;
      add_weighted(x, weight, mailbox.vectors[m * share.size + i - share.first]);
    }
    if (!is_partial) {
      write_vector<Q>(p, at, merged, x);
      continue;
    }
    // All members write the maximum and the sum, which are equal, because each member's arrival at
    // is_last_part() must make them visible.
    const int64_t index = partials.of(part, at.row);
    p.partial_max[index] = merged.top;
    p.partial_sum[index] = merged.sum;
    *reinterpret_cast<float4*>(p.partial_out + index * p.head_dim_v + at.column) = x;
  }
}

// Merges the combined rows of the cluster's first num_members thread blocks, all of which call this
// with all threads. The others have ended. No member ends while another may write to it.
template <typename Q, int kTeams, int kRows, int kDim>
__device__ inline void merge_in_cluster(const Params& p, const Request& req,
                                        const CombinedRows<kTeams, kRows, kDim>& combined,
                                        const Mailbox<kRows, kDim>& mailbox,
                                        const Share<kDim>& share, int num_rows, int kv_head,
                                        int rank, int num_members, const PartialRows& partials,
                                        int part, bool is_partial) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  wait_in_cluster();
  send_rows(combined, mailbox, share, num_rows, rank, num_members);
  __syncwarp();
  sync_cluster_memory();
  merge_received<Q>(p, req, mailbox, share, kv_head, num_members, partials, part, is_partial);
#endif
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

// Merges a vector of the partial results of num_parts clusters into the output, after all of them
// have stored it. kPartsAtOnce parts are in flight together.
template <typename Q, int kPartsAtOnce>
__device__ inline void merge_vector(const Params& p, const VectorPlace& at,
                                    const PartialRows& partials, int num_parts) {
  RowSum merged;
  float4 sum = {};
  for (int first = 0; first < num_parts; first += kPartsAtOnce) {
    RowSum parts[kPartsAtOnce];
    float4 x[kPartsAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kPartsAtOnce; ++k) {
      if (first + k >= num_parts) continue;
      const int64_t index = partials.of(first + k, at.row);
      parts[k] = {__ldcg(p.partial_max + index), __ldcg(p.partial_sum + index)};
      x[k] =
          __ldcg(reinterpret_cast<const float4*>(p.partial_out + index * p.head_dim_v + at.column));
    }
    float top = merged.top;
#pragma unroll
    for (int k = 0; k < kPartsAtOnce; ++k) top = fmaxf(top, parts[k].top);
    const float shrink = weight_of(merged.top, top);
    merged = {top, merged.sum * shrink};
    sum = {sum.x * shrink, sum.y * shrink, sum.z * shrink, sum.w * shrink};
#pragma unroll
    for (int k = 0; k < kPartsAtOnce; ++k) {
      const float weight = weight_of(parts[k].top, top);
      merged.sum += weight * parts[k].sum;
      add_weighted(sum, weight, x[k]);
    }
  }
  write_vector<Q>(p, at, merged, sum);
}

// Merges the partial results of a row into the output. The whole warp calls this, and computes 128
// columns at a time, four per lane. With few rows, this is faster than merge_vector().
template <typename Q>
__device__ inline void merge_row(const Params& p, const Request& req, int row, int kv_head,
                                 const PartialRows& partials, int num_parts) {
  constexpr int kPartsAtOnce = 8;
  const int query = token_of_row(p, req, row);
  const int head = kv_head * p.group + row - query * p.group;
  Q* out = static_cast<Q*>(p.out) +
           (int64_t{req.first_token + query} * p.num_heads + head) * p.head_dim_v;
  const int own_d = static_cast<int>(threadIdx.x) % 32 * 4;
  float4 x[kPartsAtOnce];
  const auto load = [&](int first_part, int d) {
#pragma unroll
    for (int i = 0; i < kPartsAtOnce; ++i) {
      const int64_t at = partials.of(first_part + i, row) * p.head_dim_v + d;
      const bool wanted = d < p.head_dim_v && first_part + i < num_parts;
      x[i] = wanted ? __ldcg(reinterpret_cast<const float4*>(p.partial_out + at)) : float4();
    }
  };
  load(0, own_d);  // in flight together with the weights
  const SplitWeights weights(p, head, num_parts, [&](int part) { return partials.of(part, row); });
  for (int first_d = 0; first_d < p.head_dim_v; first_d += 128) {
    const int d = first_d + own_d;
    float4 sum = {};
    for (int first_part = 0; first_part < num_parts; first_part += kPartsAtOnce) {
      if (first_d + first_part > 0) load(first_part, d);
#pragma unroll
      for (int i = 0; i < kPartsAtOnce; ++i) add_weighted(sum, weights.of(first_part + i), x[i]);
    }
    if (d >= p.head_dim_v) continue;
    const float factor = weights.factor;
    store_vec(out + d, Vec<Q, 4>{from_float<Q>(sum.x * factor), from_float<Q>(sum.y * factor),
                                 from_float<Q>(sum.z * factor), from_float<Q>(sum.w * factor)});
  }
}

// If the thread block is the last of num_parts to store its rows, it merges them into the output.
template <typename Q>
__device__ inline void merge_rows_if_last(const Params& p, const Request& req, int num_rows,
                                          int kv_head, const PartialRows& partials,
                                          uint32_t* counter, int num_parts) {
  if (!is_last_part(counter, num_parts)) return;
  const int num_warps = static_cast<int>(blockDim.x) / 32;
  for (int row = static_cast<int>(threadIdx.x) / 32; row < num_rows; row += num_warps) {
    merge_row<Q>(p, req, row, kv_head, partials, num_parts);
  }
}

// If the thread block is the last of num_parts to store its share of the partial results, it merges
// that share into the output.
template <typename Q, int kDim>
__device__ inline void merge_if_last(const Params& p, const Request& req, const Share<kDim>& share,
                                     int kv_head, const PartialRows& partials, uint32_t* counter,
                                     int num_parts) {
  int i = share.first + static_cast<int>(threadIdx.x);
  VectorPlace at(p, req, kv_head, share, i);  // computed before the other parts arrive
  if (!is_last_part(counter, num_parts)) return;
  while (i < share.end) {
    if (at.column >= p.head_dim_v) {
      // A column of padding.
    } else if (num_parts <= 8) {
      merge_vector<Q, 8>(p, at, partials, num_parts);
    } else {
      merge_vector<Q, 16>(p, at, partials, num_parts);
    }
    i += static_cast<int>(blockDim.x);
    at = VectorPlace(p, req, kv_head, share, i);
  }
}

}  // namespace quire::cuda::native
