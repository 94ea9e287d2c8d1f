// The plan of the kernels for latent caches, computed on the host from upper bounds of the lengths.
// These kernels compute attention over one KV head, whose values are the first elements of its
// keys. There are two: FlashInfer's MLA kernel, and a kernel for few rows per request
// (latent_decode_kernel.cu).
//
// A tile consists of packed rows of one request: row = token * num_heads + head. The number of
// heads need not divide a tile's rows: the rows that remain are neither read nor written. A tile's
// work is counted in units of LatentGrid::tile_positions() positions. A worker consists of the one
// or two thread blocks that compute a tile; there are as many workers as the device can run at
// once. The units of all tiles, concatenated, are split into equal parts, one per worker. If a tile
// is split, its parts produce partial results, which the kernels merge at their end: FlashInfer's
// kernel after a grid barrier, the decode kernel tile by tile.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/backend.h"

namespace quire::cuda::flashinfer_backend {

inline constexpr int kLatentDim = 512;  // of values
inline constexpr int kLatentRopeDim = 64;
// FlashInfer's kernel: rows per thread block, and positions that it reads at once.
inline constexpr int kLatentBlockRows = 64;
inline constexpr int kLatentTilePositions = 64;
// The decode kernel: rows per tile, positions that it reads at once, and the maximum number of
// parts of a tile, which also limits the workers.
inline constexpr int kLatentDecodeRows = 16;
inline constexpr int kLatentDecodeTilePositions = 32;
inline constexpr int kMaxLatentParts = 256;
// FlashInfer's kernel reads positions up to the tile's last whole token, so all heads of a token
// must be in the same tile.
inline constexpr int kMaxLatentHeads = 2 * kLatentBlockRows;

enum class LatentKernel {
  kDecode,      // tiles of 16 rows, on average up to two per request
  kFlashInfer,  // tiles of 64 or 128 rows; only rows of whole tokens are used
};

// The kernel and the grid of a range. For a graph they depend on the range's shape only.
struct LatentGrid {
  LatentKernel kernel = LatentKernel::kFlashInfer;
  int tile_blocks = 1;  // thread blocks per worker: 1 or 2
  int num_workers = 1;

  int tile_rows() const {
    return kernel == LatentKernel::kDecode ? kLatentDecodeRows : tile_blocks * kLatentBlockRows;
  }
  // The rows of a tile that are used.
  int used_rows(int num_heads) const {
    const int rows = tile_rows();
    return kernel == LatentKernel::kDecode ? rows : rows - rows % num_heads;
  }
  // Positions that the kernel reads at once.
  int tile_positions() const {
    return kernel == LatentKernel::kDecode ? kLatentDecodeTilePositions : kLatentTilePositions;
  }
  friend bool operator==(const LatentGrid&, const LatentGrid&) = default;
};
LatentGrid choose_latent_grid(const AttentionShape& shape, const PhaseRange& range, int num_sms);

// A part of a tile's positions. The kernel reads the true length on the device, and skips positions
// beyond it.
struct alignas(16) LatentWork {
  int32_t req = 0;       // of the phase
  int32_t row = 0;       // first packed row of the tile
  int32_t kv_start = 0;  // multiple of LatentGrid::tile_positions()
  int32_t kv_end = 0;    // upper bound
  int32_t partial = -1;  // first partial row; -1: the result is complete
  // With a partial result: the part's index within its tile, the number of the tile's parts, and
  // the tile's index among the split tiles.
  int32_t part = 0;
  int32_t num_parts = 1;
  int32_t cut = 0;
  int32_t num_rows = 0;
  int32_t out_row = 0;       // the tile's first row, over all heads of all tokens of the step
  int32_t q_len = 0;         // of the request
  int32_t later_tokens = 0;  // of the request, after the tile's last token
};

// The lengths that FlashInfer's kernel gets for a work item, as if the request ended with the
// tile's last token. So the kernel skips the later rows, which belong to the next tile, and the
// causal mask of the tile's rows stays the same.
struct LatentView {
  int32_t q_len = 0;
  int32_t kv_len = 0;
  int32_t kv_end = 0;
};
// seq_len: the request's true length; 0 for padding.
constexpr LatentView view_of(const LatentWork& work, int32_t seq_len) {
  const int32_t kv_len = seq_len > work.later_tokens ? seq_len - work.later_tokens : 0;
  return {.q_len = work.q_len - work.later_tokens,
          .kv_len = kv_len,
          .kv_end = work.kv_end < kv_len ? work.kv_end : kv_len};
}

// The arrays of a plan, in one allocation: first the arrays of fixed size, then the work items, so
// that the used part is contiguous. In FlashInfer's kernel, a thread block merges rows [merge_row,
// merge_row_end) of out, counted over all heads of all tokens of the step. Row i of this range is
// the sum of partial rows merge_partial + i, merge_partial + i + merge_stride, … below
// merge_partial_end.
struct LatentArrays {
  int32_t* worker_start = nullptr;       // [num_sms + 1], index into works
  int32_t* merge_row = nullptr;          // [num_sms]
  int32_t* merge_row_end = nullptr;      // [num_sms]
  int32_t* merge_partial = nullptr;      // [num_sms]
  int32_t* merge_partial_end = nullptr;  // [num_sms]
  int32_t* merge_stride = nullptr;       // [num_sms]
  // [num_sms], one per split tile: a counter of the decode kernel, initially 0
  unsigned long long* arrivals = nullptr;
  LatentWork* first_works = nullptr;  // [num_sms], copies of each worker's first work item
  LatentWork* works = nullptr;
};
LatentArrays place_latent_arrays(void* memory, int num_sms);
// Bytes of the arrays with this number of work items.
size_t latent_array_bytes(int num_sms, int64_t num_works);

// Upper bounds over all batches within the limits.
int64_t max_latent_works(const AttentionShape& shape, const PlanLimits& limits, int num_sms);
int64_t max_latent_partial_rows(int num_sms);

class LatentPlanner {
 public:
  // Allocates for the largest batch within the limits, so that later calls allocate nothing.
  void reserve(const AttentionShape& shape, const PlanLimits& limits, int num_sms);
  // Lists the tiles of the range and chooses how they are split. Returns an upper bound on the
  // number of work items.
  int64_t measure(const AttentionShape& shape, const AttentionBatch& batch, const PhaseRange& range,
                  const LatentGrid& grid);
  // Fills the arrays for the measured range; returns the number of work items.
  int64_t fill(int num_sms, const LatentArrays& arrays);

 private:
  struct Tile {
    int32_t req;
    int32_t row;
    int32_t num_rows;
    int32_t out_row;  // over all heads of all tokens of the step
    int32_t kv_end;   // end of the positions that any of the rows attends to
    int32_t q_len;    // of the request
    int32_t later_tokens;
  };
  // A split tile.
  struct Cut {
    Tile tile;
    int32_t partial;
    int32_t num_parts;
  };

  void list_tiles(const AttentionShape& shape, const AttentionBatch& batch,
                  const PhaseRange& range);
  int64_t num_units(int32_t kv_end) const;
  void choose_budget();
  void cut_tiles(const LatentArrays& arrays);
  void number_parts(LatentWork* parts, int32_t num_parts) const;
  void share_merges(int num_sms, const LatentArrays& arrays) const;

  LatentGrid grid_;
  std::vector<Tile> tiles_;
  std::vector<Cut> cuts_;
  int64_t budget_ = 0;     // of a worker, in units
  bool one_each_ = false;  // one worker per tile
  int64_t num_works_ = 0;
};

}  // namespace quire::cuda::flashinfer_backend
