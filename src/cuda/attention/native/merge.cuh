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

// The part of a request's vectors that a thread block merges.
struct Share {
  int row_vectors;  // per row
  int first, end;   // the thread block's vectors
  int size;         // vectors per thread block; the last ones may have fewer

  __device__ Share(const Params& p, int num_rows, int rank, int num_members)
      : row_vectors(p.head_dim_v / 4) {
    const int num_vectors = num_rows * row_vectors;
    size = (num_vectors + num_members - 1) / num_members;
    first = rank * size;
    end = min(num_vectors, first + size);
  }
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
template <int kWarps, int kRows, int kDim>
__device__ inline void send_rows(const CombinedRows<kWarps, kRows, kDim>& combined,
                                 const Mailbox<kRows, kDim>& mailbox, const Share& share,
                                 int num_rows, int rank, int num_members) {
  using Combined = CombinedRows<kWarps, kRows, kDim>;
  constexpr int kThreads = kWarps * 32;
  const uint32_t vectors = shared_address(mailbox.vectors + rank * share.size);
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * share.row_vectors; i += kThreads) {
    const int row = i / share.row_vectors;
    const float* column = combined.o + row * Combined::kRowFloats + i % share.row_vectors * 4;
    const float top = combined.top(row);
    float4 x = {};
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      add_weighted(x, combined.weight(w, row, top),
                   *reinterpret_cast<const float4*>(column + w * kRows * Combined::kRowFloats));
    }
    const int member = i / share.size;
    const auto offset = static_cast<uint32_t>((i - member * share.size) * sizeof(float4));
    store_in_cluster(address_in(vectors + offset, static_cast<uint32_t>(member)), x);
  }
  for (int i = static_cast<int>(threadIdx.x); i < num_rows * num_members; i += kThreads) {
    const int row = i % num_rows;
    const auto member = static_cast<uint32_t>(i / num_rows);
    const float top = combined.top(row);
    float sum = 0.0F;
#pragma unroll
    for (int w = 0; w < kWarps; ++w) {
      sum += combined.weight(w, row, top) * combined.sum[w * kRows + row];
    }
    store_in_cluster(address_in(shared_address(&mailbox.sums[rank][row]), member),
                     make_float2(top, sum));
  }
}

// Where a vector is in the output: its token, its head and the first of its columns.
struct VectorPlace {
  int token, head, column;

  __device__ VectorPlace(const Params& p, const Request& req, int kv_head, const Share& share,
                         int vector) {
    const int row = vector / share.row_vectors;
    token = req.first_token + row / p.group;
    head = kv_head * p.group + row % p.group;
    column = vector % share.row_vectors * 4;
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
// the partial results of cluster `cluster_idx` if is_partial.
template <typename Q, int kRows, int kDim>
__device__ inline void merge_received(const Params& p, const Request& req,
                                      const Mailbox<kRows, kDim>& mailbox, const Share& share,
                                      int kv_head, int num_members, int cluster_idx,
                                      bool is_partial) {
  for (int i = share.first + static_cast<int>(threadIdx.x); i < share.end;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / share.row_vectors;
    RowSum merged;
#pragma unroll
    for (int m = 0; m < kMaxCluster; ++m) {
      if (m < num_members) merged.top = fmaxf(merged.top, mailbox.sums[m][row].top);
    }
    float4 x = {};
#pragma unroll
    for (int m = 0; m < kMaxCluster; ++m) {
      if (m >= num_members) continue;
      const float weight = weight_of(mailbox.sums[m][row].top, merged.top);
      merged.sum += weight * mailbox.sums[m][row].sum;
      add_weighted(x, weight, mailbox.vectors[m * share.size + i - share.first]);
    }
    const VectorPlace at(p, req, kv_head, share, i);
    if (!is_partial) {
      write_vector<Q>(p, at, merged, x);
      continue;
    }
    // All members write the maximum and the sum, which are equal, because each member's arrival at
    // is_last_part() must make them visible.
    const int64_t index = partial_index(p, at.token, at.head, cluster_idx);
    p.partial_max[index] = merged.top;
    p.partial_sum[index] = merged.sum;
    *reinterpret_cast<float4*>(p.partial_out + index * p.head_dim_v + at.column) = x;
  }
}

// Merges the combined rows of the cluster's first num_members thread blocks, all of which call this
// with all threads. The others have ended. No member ends while another may write to it.
template <typename Q, int kWarps, int kRows, int kDim>
__device__ inline void merge_in_cluster(const Params& p, const Request& req,
                                        const CombinedRows<kWarps, kRows, kDim>& combined,
                                        const Mailbox<kRows, kDim>& mailbox, const Share& share,
                                        int num_rows, int kv_head, int rank, int num_members,
                                        int cluster_idx, bool is_partial) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  wait_in_cluster();
  send_rows(combined, mailbox, share, num_rows, rank, num_members);
  __syncwarp();
  sync_cluster_memory();
  merge_received<Q>(p, req, mailbox, share, kv_head, num_members, cluster_idx, is_partial);
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
__device__ inline void merge_vector(const Params& p, const VectorPlace& at, int num_parts) {
  const int64_t index = partial_index(p, at.token, at.head, 0);
  RowSum merged;
  float4 sum = {};
  for (int first = 0; first < num_parts; first += kPartsAtOnce) {
    RowSum parts[kPartsAtOnce];
    float4 x[kPartsAtOnce] = {};
#pragma unroll
    for (int k = 0; k < kPartsAtOnce; ++k) {
      if (first + k >= num_parts) continue;
      const int64_t part = index + first + k;
      parts[k] = {__ldcg(p.partial_max + part), __ldcg(p.partial_sum + part)};
      x[k] =
          __ldcg(reinterpret_cast<const float4*>(p.partial_out + part * p.head_dim_v + at.column));
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

// If the thread block is the last of num_parts to store its share of the partial results, it merges
// that share into the output.
template <typename Q>
__device__ inline void merge_if_last(const Params& p, const Request& req, const Share& share,
                                     int kv_head, uint32_t* counter, int num_parts) {
  int i = share.first + static_cast<int>(threadIdx.x);
  VectorPlace at(p, req, kv_head, share, i);  // computed before the other parts arrive
  if (!is_last_part(counter, num_parts)) return;
  while (i < share.end) {
    if (num_parts <= 8) {
      merge_vector<Q, 8>(p, at, num_parts);
    } else {
      merge_vector<Q, 16>(p, at, num_parts);
    }
    i += static_cast<int>(blockDim.x);
    at = VectorPlace(p, req, kv_head, share, i);
  }
}

}  // namespace quire::cuda::native
