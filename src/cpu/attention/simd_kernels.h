// The vector kernels, which are selected at run time. A task computes some query rows of one
// request and KV head over its paged context. Its rows are [query, head of the group].
#pragma once

#include <cstdint>

#include "base/numbers.h"
#include "cpu/attention/support.h"
#include "kv/kv_layout.h"

namespace quire::cpu {

// Tokens per call of the dot kernel; divides every page size.
inline constexpr int kBlockTokens = 16;
inline constexpr int kTileTokens = 64;        // tokens per softmax update
inline constexpr int kPartitionTokens = 512;  // tokens per partial result
inline constexpr int kMaxLanes = 16;          // F32 lanes of the widest target

constexpr int64_t pad_lanes(int64_t n) {
  return round_up(n, kMaxLanes);
}

// Softmax statistics and output of each row over some positions, not yet normalized: sum = Σ
// exp(score - max), acc = Σ exp(score - max) * v. Without any position, sum is 0 and max is -inf.
struct Partial {
  float* max;  // [num_rows]
  float* sum;  // [num_rows]
  float* acc;  // [num_rows, pad_lanes(head_dim_v)]
};

// Scratch memory of one thread, 64-byte aligned.
struct TaskScratch {
  float* q;       // [num_rows, pad_lanes(head_dim)], zero-padded
  float* scores;  // [num_rows, kTileTokens]
  float* sums;    // [num_rows, kMaxLanes]
  float* block;   // [kBlockTokens, pad_lanes(max of both head dims)]: K or V as F32
};

struct AttentionTask {
  const float* q;  // first row: [num_queries, q_token_stride], a group's heads are contiguous
  int64_t q_token_stride;
  int num_queries;
  int group;
  int head_dim;
  int head_dim_v;
  bool is_latent;
  KvCacheView kv;        // k and v at this KV head
  const int32_t* pages;  // block table row
  int page_size;
  const VisibleRange* visible;  // [num_queries]; both ends are non-decreasing
  float score_scale;            // softmax scale, times k_scale for an FP8 cache
  float softcap;                // 0: off
  TaskScratch scratch;

  int num_rows() const { return num_queries * group; }
  int first_position() const { return visible[0].first; }
  int end_position() const { return visible[num_queries - 1].end; }
};

// Copies the task's queries to its scratch; called once before its partitions are computed.
void load_queries(const AttentionTask& task);
// Computes the attention of all rows over the positions of one absolute partition.
void attend_partition(const AttentionTask& task, int partition, const Partial& out);
// Merges `from`, the result of the next partition, into `into`.
void fold_partial(const AttentionTask& task, const Partial& from, const Partial& into);

struct RowOutput {
  float* out;  // first row: [num_queries, out_token_stride]
  int64_t out_token_stride;
  const float* sinks;  // [group]; may be null
  float v_scale;
};
// Normalizes the result. Rows without a visible position become zeros.
void write_rows(const AttentionTask& task, const Partial& result, const RowOutput& output);

}  // namespace quire::cpu
