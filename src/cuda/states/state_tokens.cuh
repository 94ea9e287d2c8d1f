// The tokens of one sequence in a step of an operation on states, and the pages of its states, in
// device code.
#pragma once

#include <cstdint>

#include "cuda/device/search.cuh"
#include "ops/state_ops.h"

namespace quire::cuda {

struct SeqTokens {
  int64_t first_row = 0;  // the row of the step that has token `begin`
  int begin = 0;
  int end = 0;
  int kept_end = 0;                // no state is written from this token on
  const int32_t* pages = nullptr;  // by block
  int block_size = 0;

  __device__ int64_t row_of(int token) const { return first_row + token - begin; }
  __device__ int block_of(int token) const { return token / block_size; }
  // One past the last kept token of the block.
  __device__ int end_in(int block) const { return min((block + 1) * block_size, kept_end); }
  // Whether the step writes the state of the block.
  __device__ bool writes(int block) const {
    return end_in(block) > max(begin, block * block_size) && pages[block] != 0;
  }
};

// The tokens as if all were kept. A request that pads a graph's batch has no tokens.
__device__ inline SeqTokens all_tokens_of(const StatePages& states, int seq) {
  SeqTokens tokens;
  tokens.first_row = states.query_start[seq];
  tokens.end = states.seq_lens[seq];
  tokens.begin =
      tokens.end == 0 ? 0 : tokens.end - (states.query_start[seq + 1] - states.query_start[seq]);
  tokens.pages = states.page_table + seq * states.max_pages;
  tokens.block_size = states.block_size;
  tokens.kept_end = tokens.end;
  return tokens;
}
__device__ inline int kept_end_of(const StatePages& states, const SeqTokens& tokens) {
  int end = tokens.end;
  while (end > tokens.begin && states.kv_slots[tokens.row_of(end - 1)] < 0) --end;
  return end;
}
__device__ inline SeqTokens tokens_of(const StatePages& states, int seq) {
  SeqTokens tokens = all_tokens_of(states, seq);
  tokens.kept_end = kept_end_of(states, tokens);
  return tokens;
}

__device__ inline float* page_of(const StatePages& states, int32_t id) {
  return reinterpret_cast<float*>(states.first + id * states.page_bytes);
}

// The page that the step reads; null if there is no token before the step.
__device__ inline const float* page_before(const StatePages& states, const SeqTokens& tokens) {
  if (tokens.begin <= 0) return nullptr;
  return page_of(states, tokens.pages[tokens.block_of(tokens.begin - 1)]);
}

// The rows at the start of a page: the newest inputs of a convolution, by position modulo their
// number. `inputs(row, channel)` is an input of the step.
template <typename Inputs>
struct ConvRows {
  Inputs inputs;
  const float* before = nullptr;  // the page before the step
  int num_rows = 0;
  int64_t num_channels = 0;

  __device__ float at(const SeqTokens& tokens, int position, int64_t channel) const {
    if (position >= tokens.begin) return inputs(tokens.row_of(position), channel);
    return before[position % num_rows * num_channels + channel];
  }
};

// Writes a channel of the rows that the page of a block has after the step. `oldest`: the first
// position whose row the step may need later.
template <typename Inputs>
__device__ void write_rows(const StatePages& states, const ConvRows<Inputs>& rows,
                           const SeqTokens& tokens, int block, int oldest, int64_t channel) {
  if (!tokens.writes(block)) return;
  float* const page = page_of(states, tokens.pages[block]);
  const int end = tokens.end_in(block);
  for (int p = max(max(end - rows.num_rows, oldest), 0); p < end; ++p) {
    if (p < tokens.begin && page == rows.before) continue;  // the page has it
    page[p % rows.num_rows * rows.num_channels + channel] = rows.at(tokens, p, channel);
  }
}

// A block that has tokens of a step.
struct TouchedBlock {
  int seq = 0;
  int block = 0;
};

// An upper bound of the indices that touched_block() accepts.
constexpr int64_t touched_blocks(const StatePages& states, int64_t num_tokens, int num_seqs) {
  return num_tokens / states.block_size + int64_t{2} * num_seqs;
}
// Maps indices to blocks: all touched blocks of sequences [first, first + count), and others.
__device__ inline TouchedBlock touched_block(const StatePages& states, int first, int count,
                                             int index) {
  const auto start_of = [&](int seq) {
    return (states.query_start[seq] - states.query_start[first]) / states.block_size +
           2 * (seq - first);
  };
  const int seq = last_starting_by(first, count, index, start_of);
  const int begin = states.seq_lens[seq] - (states.query_start[seq + 1] - states.query_start[seq]);
  return {seq, max(begin, 0) / states.block_size + index - start_of(seq)};
}

}  // namespace quire::cuda
