// Computes from the model's logits, per row, one token's log probability and rank, and the log
// probabilities of the most likely tokens.
//
// Grid: (rows, slices of a row). Each thread block holds its slice in registers. The num_top-th
// largest of its threads' largest keys is a lower bound of the slice's num_top largest keys, so at
// most num_top * 32 keys remain to be sorted. The thread block of a row that finishes last merges
// the slices. exp is computed in fp32. Up to 32 values are added in fp32 and these sums in fp64, so
// that a log probability is exact to 1e-6.
#include "cuda/base/launch.h"
#include "cuda/sample/logits.cuh"

namespace quire::cuda {
namespace {

constexpr int kLogprobThreads = 256;
constexpr int kQuadsPerThread = kSliceSize / 4 / kLogprobThreads;
constexpr int kMaxList = kMaxSlices * kMaxTopLogprobs;
static_assert(kMaxList >= kMaxTopLogprobs * kQuadsPerThread * 4);

struct Query {
  int32_t target;  // < 0: no log probabilities
  int32_t num_top;
};

struct LogprobShared {
  uint64_t thread_keys[kLogprobThreads];
  uint64_t list[kMaxList];
  uint64_t top[kMaxTopLogprobs];
  uint64_t bound;
  int list_size;
  bool is_last;
};

// Writes the num_top largest keys of the list to `top`, in descending order; 0 for missing keys.
__device__ void sort_top(LogprobShared& shared, int num_top) {
  const auto thread = static_cast<int>(threadIdx.x);
  if (thread < kMaxTopLogprobs) shared.top[thread] = 0;
  __syncthreads();
  const int size = shared.list_size;
  for (int i = thread; i < size; i += kLogprobThreads) {
    const uint64_t key = shared.list[i];
    int larger = 0;
    for (int k = 0; k < size; ++k) larger += static_cast<int>(shared.list[k] > key);
    if (larger < num_top) shared.top[larger] = key;
  }
  __syncthreads();
}

// A key of 0 means no token.
__device__ void find_top(LogprobShared& shared, const uint64_t (&keys)[kQuadsPerThread * 4],
                         int num_top) {
  const auto thread = static_cast<int>(threadIdx.x);
  uint64_t mine = 0;
#pragma unroll
  for (const uint64_t key : keys) mine = key > mine ? key : mine;
  shared.thread_keys[thread] = mine;
  if (thread == 0) {
    shared.bound = 1;
    shared.list_size = 0;
  }
  __syncthreads();
  int larger = 0;
  for (int t = 0; t < kLogprobThreads; ++t)
    larger += static_cast<int>(shared.thread_keys[t] > mine);
  if (larger == num_top - 1 && mine != 0)
    shared.bound = mine;  // only one thread, because keys are
                          // unique
  __syncthreads();
  const uint64_t bound = shared.bound;
  if (mine >= bound) {
#pragma unroll
    for (const uint64_t key : keys) {
      if (key >= bound) shared.list[atomicAdd(&shared.list_size, 1)] = key;
    }
  }
  __syncthreads();
  sort_top(shared, num_top);
}

__device__ void summarize_slice(LogprobShared& shared, const LogitsRow& row, int slice,
                                const Query& query, SliceLogprobs& out) {
  const float target_logit = row.logits[query.target];
  const int32_t first = slice * (kSliceSize / 4) + static_cast<int32_t>(threadIdx.x);
  Quad quads[kQuadsPerThread];
#pragma unroll
  for (int i = 0; i < kQuadsPerThread; ++i) quads[i] = row.quad(first + i * kLogprobThreads);
  LargestLogit mine;
  int num_at_least = 0;
#pragma unroll
  for (int i = 0; i < kQuadsPerThread; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t id = (first + i * kLogprobThreads) * 4 + j;
      mine.add(quads[i].x[j], id);
      num_at_least += static_cast<int>(id < row.end_id && quads[i].x[j] >= target_logit);
    }
  }
  const LargestLogit found = block_largest(mine);
  const float largest = found.logit;
  float sum = 0;
  if (largest > minus_infinity()) {
#pragma unroll
    for (int i = 0; i < kQuadsPerThread; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum += expf(quads[i].x[j] - largest);
    }
  }
  const double slice_sum = block_sum(static_cast<double>(sum));
  num_at_least = block_sum(num_at_least);
  if (query.num_top > 0) {
    uint64_t keys[kQuadsPerThread * 4];
#pragma unroll
    for (int i = 0; i < kQuadsPerThread; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int32_t id = (first + i * kLogprobThreads) * 4 + j;
        keys[i * 4 + j] = id < row.end_id ? token_key(quads[i].x[j], id) : 0;
      }
    }
    find_top(shared, keys, query.num_top);
  }
  if (threadIdx.x < query.num_top) out.top_keys[threadIdx.x] = shared.top[threadIdx.x];
  if (threadIdx.x == 0) {
    out.sum = slice_sum;
    out.largest = largest;
    out.nan_id = found.nan_id;
    out.num_at_least = num_at_least;
  }
}

__device__ void merge_slices(LogprobShared& shared, const LogitsRow& row, const Query& query,
                             const SliceLogprobs* slices, int count, LogprobsResult& result) {
  const auto thread = static_cast<int>(threadIdx.x);
  LargestLogit all;
  for (int s = 0; s < count; ++s) all.merge(slices[s].largest, kNoToken, slices[s].nan_id);
  const float largest = all.logit;
  double sum = 0;
  int rank = 0;
  if (thread < count) {
    const SliceLogprobs& mine = slices[thread];
    if (mine.largest > minus_infinity()) {
      sum = mine.sum * exp(static_cast<double>(mine.largest) - static_cast<double>(largest));
    }
    rank = mine.num_at_least;
  }
  sum = block_sum(sum);
  rank = block_sum(rank);
  const double log_sum = log(sum);
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - static_cast<double>(largest) - log_sum);
  };
  for (int i = thread; i < count * query.num_top; i += kLogprobThreads) {
    shared.list[i] = slices[i / query.num_top].top_keys[i % query.num_top];
  }
  if (thread == 0) shared.list_size = count * query.num_top;
  __syncthreads();
  sort_top(shared, query.num_top);
  if (thread < query.num_top) {
    result.top_ids[thread] = token_of(shared.top[thread]);
    result.top_logprobs[thread] = logprob(logit_of(shared.top[thread]));
  }
  if (thread != 0) return;
  result.num_top = query.num_top;
  result.status = all.status();
  result.detail = all.nan_id;
  result.token_id = query.target;
  result.rank = rank;
  result.logprob = logprob(row.logits[query.target]);
}

__device__ void run_query(const Query& query, const float* logits, int vocab_size,
                          SliceLogprobs* slices, uint32_t* arrivals, LogprobsResult* results) {
  __shared__ LogprobShared shared;
  const auto i = static_cast<int>(blockIdx.x);
  const auto count = static_cast<int>(gridDim.y);
  if (query.target < 0) {
    if (blockIdx.y == 0 && threadIdx.x == 0) {
      results[i].num_top = -1;
      results[i].status = RowStatus::kPadding;
    }
    return;
  }
  const LogitsRow row(logits, vocab_size, i);
  SliceLogprobs* row_slices = slices + static_cast<int64_t>(i) * count;
  summarize_slice(shared, row, static_cast<int>(blockIdx.y), query, row_slices[blockIdx.y]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.is_last = atomicInc(&arrivals[i], static_cast<uint32_t>(count) - 1) == count - 1;
  }
  __syncthreads();
  if (!shared.is_last) return;
  __threadfence();
  merge_slices(shared, row, query, row_slices, count, results[i]);
}

__global__ void __launch_bounds__(kLogprobThreads)
    sampled_logprobs_kernel(SlotTables tables, SampleCall call, SliceLogprobs* slices,
                            uint32_t* arrivals, LogprobsResult* results) {
  const int slot = call.slots[blockIdx.x];
  const RowResult& sampled = call.results[blockIdx.x];
  Query query = {-1, 0};
  if (slot >= 0 && sampled.status == RowStatus::kOk) {
    const int num_top = tables.states[slot].num_logprobs;
    if (num_top >= 0) query = {sampled.token_id, min(num_top, tables.vocab_size)};
  }
  run_query(query, call.logits, tables.vocab_size, slices, arrivals, results);
}

__global__ void __launch_bounds__(kLogprobThreads)
    target_logprobs_kernel(const float* logits, int vocab_size, const int32_t* targets, int num_top,
                           SliceLogprobs* slices, uint32_t* arrivals, LogprobsResult* results) {
  const int32_t target = targets[blockIdx.x];
  const Query query = {target < vocab_size ? target : -1, min(num_top, vocab_size)};
  run_query(query, logits, vocab_size, slices, arrivals, results);
}

LaunchShape shape_of(int vocab_size, int num_rows) {
  return {.grid = slices_grid(num_rows, vocab_size), .block = kLogprobThreads};
}

}  // namespace

void launch_sampled_logprobs(const SlotTables& tables, const SampleCall& call,
                             SliceLogprobs* slices, uint32_t* arrivals, LogprobsResult* results,
                             CudaStream& stream) {
  QUIRE_LAUNCH(stream, sampled_logprobs_kernel, shape_of(tables.vocab_size, call.num_rows), tables,
               call, slices, arrivals, results);
}

void launch_target_logprobs(const float* logits, int vocab_size, const int32_t* targets,
                            int num_rows, int num_top, SliceLogprobs* slices, uint32_t* arrivals,
                            LogprobsResult* results, CudaStream& stream) {
  QUIRE_LAUNCH(stream, target_logprobs_kernel, shape_of(vocab_size, num_rows), logits, vocab_size,
               targets, num_top, slices, arrivals, results);
}

}  // namespace quire::cuda
