// Launch functions of the sampler's kernels.
#pragma once

#include "base/numbers.h"
#include "cuda/base/stream.h"
#include "cuda/sample/row_state.h"

namespace quire::cuda {

// Splits each logits row into slices of this many logits, one per thread block, when a single pass
// over the row suffices.
inline constexpr int kSliceSize = 8192;
inline constexpr int kMaxSlices = 64;
inline constexpr int num_slices(int vocab_size) {
  return ceil_div(vocab_size, kSliceSize);
}
// Rows are grid.x: the other axes are limited to 65,535.
inline dim3 slices_grid(int num_rows, int vocab_size) {
  return {static_cast<unsigned>(num_rows), static_cast<unsigned>(num_slices(vocab_size))};
}

struct SlicePick {
  double score;  // of the best token of the slice
  float largest;
  int32_t token_id;
  int32_t nan_id;  // INT32_MAX: none
  int32_t pad;
};

struct SliceLogprobs {
  double sum;  // of exp(logit - largest)
  float largest;
  int32_t nan_id;        // INT32_MAX: none
  int32_t num_at_least;  // tokens at least as likely as the target
  int32_t pad;
  uint64_t top_keys[kMaxTopLogprobs];  // descending
};

// Arguments of one sample(); all pointers are device pointers.
struct SampleCall {
  const float* logits;     // [num_rows, vocab_size]
  const int32_t* row_ids;  // [num_rows]: < 0: padding
  const int32_t* offsets;  // [num_rows]: drafts of its span before the row
  int num_rows;
  RowResult* results;  // [num_rows]
  // [num_rows]: the pass that samples each row, and its mask. Null: one pass samples all rows,
  // without masks.
  const SampleRow* rows;
  const uint32_t* masks;  // [.., bitmap_words]: the tokens that a row may sample in this step
};

// Copies uploaded rows from their block into the tables. The block holds `num_rows` headers, then
// words.
void launch_add_rows(const RowTables& tables, const void* block, int num_rows, CudaStream& stream);
// launch_forbid, launch_one_pass and launch_filter skip rows of other passes. launch_forbid
// precedes launch_filter for kRules: it makes the bitmap of tokens that each row may not sample in
// this step.
void launch_forbid(const RowTables& tables, const SampleCall& call, CudaStream& stream);
// Samples the rows of kOnePass; `random`: some row is not greedy. picks: [num_rows, num_slices];
// arrivals: [num_rows] zeros, which the kernel leaves zero.
void launch_one_pass(const RowTables& tables, const SampleCall& call, bool random, SlicePick* picks,
                     uint32_t* arrivals, CudaStream& stream);
// Samples the rows of kFilter or kRules. num_pass_rows: how many of the call's rows the pass has;
// num_sms: SMs of the stream's device.
void launch_filter(const RowTables& tables, const SampleCall& call, SamplePass pass,
                   int num_pass_rows, int num_sms, CudaStream& stream);
// Accepts each span's tokens up to the first that differs from the next draft, and advances its
// row.
void launch_commit(const RowTables& tables, const SampleCall& call, CudaStream& stream);
// Computes log probabilities of the tokens in call.results, for the rows of any pass that ask for
// them.
void launch_sampled_logprobs(const RowTables& tables, const SampleCall& call, SliceLogprobs* slices,
                             uint32_t* arrivals, LogprobsResult* results, CudaStream& stream);
// Computes log probabilities of targets [num_rows]; < 0: none.
void launch_target_logprobs(const float* logits, int vocab_size, const int32_t* targets,
                            int num_rows, int num_top, SliceLogprobs* slices, uint32_t* arrivals,
                            LogprobsResult* results, CudaStream& stream);

}  // namespace quire::cuda
