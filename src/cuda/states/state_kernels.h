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

// StateOps::short_conv for sequences of few tokens, in one kernel, and for others.
void run_short_conv_decode(const LaunchContext& context, const ShortConv& conv,
                           const SeqRange& seqs);
void run_short_conv_prefill(const LaunchContext& context, const ShortConv& conv,
                            const SeqRange& seqs);

// A step of DeltaNet without drafts for sequences with one token each, in one kernel.
// Requires Hopper, heads of kDeltaHeadDim, and a convolution of kDeltaKernel.
void run_delta_decode(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs);

inline constexpr int kDeltaHeadDim = 128;
inline constexpr int kDeltaKernel = 4;
// The widest queries, keys and values.
inline constexpr int kMaxDeltaHeadDim = 256;

// The other kernels share a workspace, which run_delta_prepare() fills for a range of sequences. It
// has a row for each token that they compute: those of the step, after num_drafts rows per sequence
// for tokens whose state is not written yet.
struct DeltaWorkspace {
  int64_t num_rows = 0;
  // [num_seqs]: x: the tokens before it are in S of the page that the step reads; y: the tokens
  // before it will be in S.
  int2* spans = nullptr;
  // In the type of the activations. Rows are padded so that reading 8 of them at one column causes
  // no bank conflicts in shared memory.
  void* q = nullptr;  // [num_k_heads, num_rows, k_stride]
  void* k = nullptr;
  void* v = nullptr;       // [num_v_heads, slices, num_rows, kDeltaSliceStride]
  float* gates = nullptr;  // [2, num_v_heads, num_rows]: the logarithm of decay; beta
  // Of each chunk of kDeltaChunk tokens: [num_chunks, num_v_heads, kDeltaChunk, chunk_stride] of
  // the two matrices and [num_chunks, num_v_heads, 3, kDeltaChunk] of the factors
  // (delta_chunks.cu).
  int64_t num_chunks = 0;
  void* solved = nullptr;
  void* scores = nullptr;
  float* factors = nullptr;
  size_t num_bytes = 0;
};

inline constexpr int kDeltaPadding = 8;  // elements after a row
inline constexpr int kDeltaSlice = 16;   // columns of a slice of values
inline constexpr int kDeltaSliceStride = kDeltaSlice + kDeltaPadding;
inline constexpr int kDeltaChunk = 64;  // tokens
inline constexpr int kDeltaChunkStride = kDeltaChunk + kDeltaPadding;
inline constexpr int kDeltaSeqsPerLaunch = 64;  // whose chunks fit into the workspace

// Divides `memory`, which may be null to compute num_bytes.
DeltaWorkspace lay_out_delta_workspace(std::byte* memory, const DeltaNetShape& shape,
                                       int num_drafts, DType activation, int64_t max_num_tokens,
                                       int64_t max_num_seqs);

// Convolution, SiLU and norms of the queries, keys and values; gates; spans.
void run_delta_prepare(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                       const DeltaWorkspace& workspace);
// The rest of the operation, token by token, for any shape that is_recurrent_shape().
void run_delta_recurrent(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                         const DeltaWorkspace& workspace);
bool is_recurrent_shape(const DeltaNetShape& shape, size_t max_shared_bytes);
// The rest of the operation, by chunks of tokens, in three kernels. Requires Hopper, F16 or BF16,
// heads of kDeltaHeadDim, at most kDeltaSeqsPerLaunch sequences, and no drafts among their tokens.
void run_delta_chunks(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& workspace);
void run_delta_scan(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                    const DeltaWorkspace& workspace);
// Norm and gate of net.out, which has the output of the recurrence; the rows of the pages.
void run_delta_finish(const LaunchContext& context, const DeltaNet& net, const SeqRange& seqs,
                      const DeltaWorkspace& workspace);

}  // namespace quire::cuda
