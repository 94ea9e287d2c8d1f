// The chunks of tokens in which a prompt's gated delta net is computed. G has the running sums of
// the logarithms of decay within a chunk, S is the state before the chunk, and D has the rows d of
//   (I + A) D = diag(beta) (V - diag(e^G) K S)
//   A[i, j] = beta[i] e^(G[i] - G[j]) k[i] . k[j], j < i
// The outputs and the state after the chunk are
//   O = diag(e^G) Q S + P D,  P[i, j] = e^(G[i] - G[j]) q[i] . k[j], j <= i
//   S' = e^G[last] S + (diag(e^(G[last] - G)) K)^T D
// run_delta_chunks() computes `solved`, (I + A)^-1 diag(beta), and `scores`, P, of all chunks at
// once; run_delta_scan() does the rest from one chunk to the next. A chunk that ends before its
// last row is filled with tokens of zeros whose decay is 1.
//
// All matrices are tiles of 64 rows and 64 columns, in the 128-byte swizzle of wgmma's operands.
// The two tiles of a head's queries, keys and values have its columns 0 to 63 and 64 to 127.
#pragma once

#include "cuda/states/delta_args.cuh"

namespace quire::cuda {

inline constexpr int kTileWidth = 64;
inline constexpr int kTileSize = kDeltaChunk * kTileWidth;
inline constexpr int kTilesPerHead = kDeltaHeadDim / kTileWidth;
inline constexpr int kTileVec = 8;  // elements of 16 bytes, which the swizzle keeps together

// The index in a tile of the element in row `row` and column `unit` * kTileVec.
__host__ __device__ constexpr int tile_at(int row, int unit) {
  return row * kTileWidth + (unit ^ row % 8) * kTileVec;
}

// The tiles of a head's queries, keys or values.
template <typename T>
__device__ T* tiles_of(const DeltaArgs<T>& args, void* base, int head, int64_t chunk) {
  return static_cast<T*>(base) +
         (head * args.workspace.num_chunks + chunk) * kTilesPerHead * kTileSize;
}

// The results of run_delta_chunks() for a chunk of a value head.
template <typename T>
struct ChunkParts {
  T* solved;
  T* scores;
  float* factors;  // [3, kDeltaChunk]: G, e^G, e^(G[last] - G)
};

template <typename T>
__device__ ChunkParts<T> parts_of(const DeltaArgs<T>& args, int64_t chunk, int v_head) {
  const int64_t index = chunk * args.shape.num_v_heads + v_head;
  return {static_cast<T*>(args.workspace.solved) + index * kTileSize,
          static_cast<T*>(args.workspace.scores) + index * kTileSize,
          args.workspace.factors + index * 3 * kDeltaChunk};
}

// The index in the workspace of a sequence's first chunk.
template <typename T>
__device__ int first_chunk(const DeltaArgs<T>& args, int seq) {
  return static_cast<int>(args.row_start(seq)) / kDeltaChunk + (seq - args.seqs.first);
}
// An upper bound of the number of chunks in a step of num_tokens.
constexpr int64_t most_chunks(int64_t num_tokens, int64_t num_seqs, int num_drafts) {
  return (num_tokens + num_seqs * num_drafts) / kDeltaChunk + num_seqs;
}

// The tokens of a chunk; count <= 0: the index is not used.
struct Chunk {
  SeqTokens tokens;
  int first;
  int count;
};

template <typename T>
__device__ Chunk chunk_at(const DeltaArgs<T>& args, int index) {
  Chunk chunk;
  const int seq = last_starting_by(args.seqs.first, args.seqs.count, index,
                                   [&](int i) { return first_chunk(args, i); });
  chunk.tokens = tokens_of(args.states, seq);
  chunk.first = first_of(args, chunk.tokens) + (index - first_chunk(args, seq)) * kDeltaChunk;
  chunk.count = min(chunk.tokens.end - chunk.first, kDeltaChunk);
  return chunk;
}

}  // namespace quire::cuda
