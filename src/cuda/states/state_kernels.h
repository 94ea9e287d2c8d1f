// The kernels of recurrent states that CudaStateOps launches. All functions enqueue; the caller has
// checked the shapes.
#pragma once

#include "cuda/ops/op_kernels.h"
#include "ops/state_ops.h"

namespace quire::cuda {

// Sequences [first, first + count) of a step.
struct SeqRange {
  int first = 0;
  int count = 0;
};

// StateOps::short_conv: in one kernel for sequences of few tokens, and for longer sequences.
void run_short_conv_decode(const LaunchContext& context, const ShortConv& conv,
                           const SeqRange& seqs);
void run_short_conv_prefill(const LaunchContext& context, const ShortConv& conv,
                            const SeqRange& seqs);

// A step of DeltaNet for sequences that decode, with at most kMaxDeltaTokens tokens each, in one
// kernel. Requires Hopper, heads of kDeltaHeadDim, and a convolution of kDeltaKernel.
void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs);
// Does the same by the kernel for many heads. Requires one token per sequence.
void run_delta_stream(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs);

inline constexpr int kDeltaHeadDim = 128;
inline constexpr int kDeltaKernel = 4;
inline constexpr int kMaxDeltaTokens = 16;
// The widest queries, keys and values.
inline constexpr int kMaxDeltaHeadDim = 256;

// S of the page that the step reads contains the tokens before `first`, so the recurrence begins
// with token `first`. After the step, S contains the tokens before `committed`.
struct DeltaSpan {
  int first;
  int committed;
};

// The results of the kernels before the recurrence, in one of two layouts.
struct DeltaWorkspace {
  DeltaSpan* spans = nullptr;  // [num_seqs]
  // The queries, keys and values after the convolution. By token they are F32 [num_rows, heads,
  // dim]: num_drafts rows per sequence for tokens before the step, then a row per token that the
  // step computes. By chunk they are tiles in the type of the activations (delta_tiles.cuh):
  // [heads, num_chunks, 2 tiles].
  void* q = nullptr;
  void* k = nullptr;
  void* v = nullptr;
  int64_t num_rows = 0;    // by chunk: kDeltaChunk per chunk
  float* gates = nullptr;  // [2, num_v_heads, num_rows]: the logarithm of decay; beta
  // Only by chunk. counts: the number of tokens of each chunk, 0 for an unused chunk. solved and
  // scores (one tile per matrix) and factors: [num_chunks, num_v_heads].
  int64_t num_chunks = 0;
  int* counts = nullptr;
  void* solved = nullptr;
  void* scores = nullptr;
  float* factors = nullptr;
  size_t num_bytes = 0;
};

inline constexpr int kDeltaChunk = 64;          // tokens
inline constexpr int kDeltaSeqsPerLaunch = 64;  // whose chunks the workspace holds

// These functions divide `memory`, which may be null to compute num_bytes.
DeltaWorkspace lay_out_by_token(std::byte* memory, const DeltaNetShape& shape, int num_drafts,
                                int64_t num_tokens, int64_t num_seqs);
DeltaWorkspace lay_out_by_chunk(std::byte* memory, const DeltaNetShape& shape, int num_drafts,
                                DType activation, int64_t num_tokens, int64_t num_seqs);

// A DeltaNet token by token, for any shape that is_recurrent_shape(), in two kernels.
void run_delta_recurrent(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                         const DeltaWorkspace& by_token);
bool is_recurrent_shape(const DeltaNetShape& shape, size_t max_shared_bytes);

// A DeltaNet by chunks of tokens. Requires Hopper, F16 or BF16, heads of kDeltaHeadDim, a
// convolution of kDeltaKernel, at most kDeltaSeqsPerLaunch sequences, and no drafts among their
// tokens. The functions below are its parts, in this order.
// Convolution, SiLU and norms; gates; spans.
void run_delta_prepare(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                       const DeltaWorkspace& by_chunk);
// The matrices of all chunks at once.
void run_delta_chunks(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& by_chunk);
// The outputs, and the states of all pages, from one chunk to the next.
void run_delta_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& by_chunk);
// Norm and gate of net.out, which has the recurrence's outputs; writes the rest of the pages.
void run_delta_finish(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& by_chunk);

}  // namespace quire::cuda
