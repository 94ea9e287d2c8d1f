// The plan of expanded latent attention (attn/expansion.h): whether it is faster, and how it is
// split into chunks. The host computes it from upper bounds of the lengths.
//
// A chunk gathers latent vectors from the cache, multiplies them into keys and values of every
// head, and attends to these. All chunks of a layer use the same max_expanded_rows() rows of
// scratch memory. A chunk has one or more whole requests, or a part of the positions of one request
// that needs more rows. The parts' results are merged by their LSE, one part after another.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "cuda/attention/flashinfer/latent_plan.h"

namespace quire::cuda::flashinfer_backend {

// The head dimensions of keys and values.
struct ExpandedDims {
  int key = 0;
  int value = 0;

  // The part of keys without rotary embedding.
  constexpr int nope() const { return key - kLatentRopeDim; }
  friend bool operator==(const ExpandedDims&, const ExpandedDims&) = default;
};
// The dimensions of published models, for which there are kernels.
inline constexpr ExpandedDims kDeepSeekDims = {.key = 192, .value = 128};
inline constexpr ExpandedDims kGlmDims = {.key = 256, .value = 256};

inline ExpandedDims expanded_dims(const AttentionShape& shape) {
  return {.key = shape.expanded_key_dim, .value = shape.expanded_value_dim};
}

// The query tokens and the positions per tile. TMA reads whole tiles, so the number of rows that a
// request has in a chunk is a multiple of this.
inline constexpr int kExpandedTile = 128;

// With DeepSeek's dimensions, this holds 11,904 positions of 16 heads in 16 bits.
inline constexpr int64_t kMaxExpandedBytes = int64_t{128} << 20;
// Bytes of a row's latent vector, keys and values.
int64_t expanded_row_bytes(const AttentionShape& shape);
// The rows of a plan's scratch memory: as many as `max_bytes` hold, but no more than the largest
// batch needs, and at least one tile.
int max_expanded_rows(const AttentionShape& shape, const PlanLimits& limits, int64_t max_bytes);

// The work of a phase in both forms.
struct ExpansionWork {
  int64_t num_tokens = 0;  // query tokens; the absorbed form multiplies their queries and outputs
  int64_t num_positions = 0;   // positions; the expanded form computes keys and values of each
  int64_t num_pairs = 0;       // pairs of a query token and a position that it attends to
  int64_t num_tile_pairs = 0;  // pairs in whole tiles, as FA3 computes them
};
ExpansionWork expansion_work(const AttentionBatch& batch, const PhaseRange& range);

// Multiplications per head: for the product of one vector with the matrices of keys and values, and
// for one pair in each form.
constexpr int64_t per_vector(const ExpandedDims& dims) {
  return int64_t{kLatentDim} * (dims.nope() + dims.value);
}
inline constexpr int64_t kPerAbsorbedPair = kLatentDim + kLatentRopeDim + kLatentDim;
constexpr int64_t per_expanded_pair(const ExpandedDims& dims) {
  return int64_t{dims.key} + dims.value;
}

// Whether the expanded form takes less time, by multiplications per head. The expansion of
// positions counts twice, because it is slower than attention. On an H200, with DeepSeek's
// dimensions and 4,096 and 32,768 context tokens, the expanded form is faster from 300 to 380 query
// tokens on. By this rule, a single prompt without context is expanded if it has 98 to 128 tokens,
// or 170 and more.
constexpr bool expansion_pays(const ExpansionWork& work, const ExpandedDims& dims) {
  const int64_t num_expanded = 2 * work.num_positions - work.num_tokens;
  return num_expanded * per_vector(dims) + work.num_tile_pairs * per_expanded_pair(dims) <
         work.num_tokens * per_vector(dims) + work.num_pairs * kPerAbsorbedPair;
}

struct ExpandedChunk {
  static constexpr int kAll = std::numeric_limits<int32_t>::max();

  int first_req = 0;  // of the phase
  int num_reqs = 0;
  int num_rows = 0;
  int kv_start = 0;  // the range of positions, limited by each request's length
  int kv_end = kAll;
  int first_tile = 0;
  int num_tiles = 0;

  bool is_part() const { return kv_end != kAll; }
  // Whether the results are merged with earlier chunks' results.
  bool continues() const { return kv_start > 0; }
};

// A phase's arrays, contiguous in memory.
struct ExpandedArrays {
  int32_t* row_start = nullptr;  // [num_reqs], first row in the request's chunks
  int32_t* tile_req = nullptr;   // [num_tiles]
  int32_t* tile_idx = nullptr;   // [num_tiles], index among the tiles of the request's tokens
};
int64_t expanded_words(int64_t num_tiles, int64_t num_reqs);
ExpandedArrays place_expanded_arrays(int32_t* words, int64_t num_tiles, int64_t num_reqs);
// An upper bound over all batches within the limits.
int64_t max_expanded_tiles(const PlanLimits& limits, int max_rows);

class ExpandedPlanner {
 public:
  // Allocates for the largest batch within the limits, so that later calls allocate nothing.
  void reserve(const PlanLimits& limits, int max_rows);
  void plan(const AttentionBatch& batch, const PhaseRange& range, int max_rows);
  std::span<const ExpandedChunk> chunks() const { return chunks_; }
  int64_t num_tiles() const { return static_cast<int64_t>(tiles_.size()); }
  // Writes the arrays of the last plan().
  void fill(const ExpandedArrays& arrays) const;

 private:
  struct Tile {
    int32_t req, idx;
  };

  void add_whole(int32_t req, int rows, int max_rows);
  void add_parts(int32_t req, int kv_len, int max_rows);
  void list_tiles(const AttentionBatch& batch, const PhaseRange& range, ExpandedChunk& chunk);

  std::vector<ExpandedChunk> chunks_;
  std::vector<int32_t> row_start_;
  std::vector<Tile> tiles_;
  // The tiles of one chunk, before they are ordered.
  std::vector<Tile> listed_;
  std::vector<uint32_t> lengths_;
  std::vector<int32_t> order_;
};

}  // namespace quire::cuda::flashinfer_backend
