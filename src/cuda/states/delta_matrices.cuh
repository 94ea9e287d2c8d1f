// The chunks of tokens in which a prompt's gated delta net is computed. With the logarithms of
// decay added up to G within a chunk, S the state before it, and the rows d of
//   (I + A) D = diag(beta) (V - diag(e^G) K S),  A[i, j] = beta[i] e^(G[i] - G[j]) k[i] . k[j], j <
//   i
// the outputs and the state after the chunk are
//   O = diag(e^G) Q S + P D,  P[i, j] = e^(G[i] - G[j]) q[i] . k[j], j <= i
//   S' = e^G[last] S + (diag(e^(G[last] - G)) K)^T D
// run_delta_chunks() computes `solved`, (I + A)^-1 diag(beta), and `scores`, P, of all chunks at
// once; run_delta_scan() does the rest from one chunk to the next. Both matrices are lower
// triangular, and only their 16 x 16 blocks on and below the diagonal are written and read.
#pragma once

#include "cuda/states/delta_args.cuh"

namespace quire::cuda {

// Places in the workspace of a chunk of a value head.
template <typename T>
struct ChunkMatrices {
  T* solved;
  T* scores;
  float* factors;  // [3, kDeltaChunk]: G, e^G, e^(G[last] - G)
};

template <typename T>
__device__ ChunkMatrices<T> matrices_of(const DeltaArgs<T>& args, int64_t chunk, int v_head) {
  constexpr int64_t kSize = int64_t{kDeltaChunk} * kDeltaChunkStride;
  const int64_t index = chunk * args.shape.num_v_heads + v_head;
  return {static_cast<T*>(args.workspace.solved) + index * kSize,
          static_cast<T*>(args.workspace.scores) + index * kSize,
          args.workspace.factors + index * 3 * kDeltaChunk};
}

// The index of a sequence's first chunk in the workspace.
template <typename T>
__device__ int first_chunk(const DeltaArgs<T>& args, int seq) {
  return static_cast<int>(args.row_start(seq)) / kDeltaChunk + (seq - args.seqs.first);
}
// The first chunk begins with the first token that the step computes.
template <typename T>
__device__ int num_chunks(const SeqTokens& tokens, const DeltaArgs<T>& args, int seq) {
  return ceil_div(tokens.end - args.workspace.spans[seq].x, kDeltaChunk);
}

}  // namespace quire::cuda
