// Assigns rows and positions to thread blocks. The host computes the plan from upper bounds of the
// lengths. FlashInfer's own planner is not used, because it allocates memory and requires exact
// lengths.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/attention/gather/gather.h"
#include "cuda/base/device_info.h"

namespace quire::cuda::flashinfer_backend {

// These functions check that FlashInfer's indices can address a block table of num_reqs * max_pages
// pages, and the queries of a step. The errors are kUnimplemented.
Status check_positions(const AttentionShape& shape, int64_t max_pages, int num_reqs);
Status check_queries(const AttentionShape& shape, int max_num_tokens);
// FlashInfer stores strides in 32 bits and copies 16 bytes at a time.
bool has_aligned_strides(const KvCacheView& kv);

// Kernel parameters that are passed by value. For a graph they depend on the range's shape only.
struct PhaseShape {
  KernelKind kernel = KernelKind::kFa2;
  int tile_rows = 16;
  int num_tiles = 0;   // the grid; with `split`, some tiles may be idle
  bool split = false;  // positions are split into chunks; a kernel merges their results

  friend bool operator==(const PhaseShape&, const PhaseShape&) = default;
};

// The device's limits for a shape.
struct DeviceLimits {
  int num_resident_blocks = 1;  // resident thread blocks per KV head
  bool has_fa3 = false;         // FA3 can read the paged cache
  bool can_gather = false;      // FA3 can read gathered copies of it
  int scratch_tokens = 0;       // capacity of a plan's workspace for gathered contexts; 0: none
};
// The limits without scratch memory.
DeviceLimits device_limits(const AttentionShape& shape, const DeviceInfo& device);

// The capacity of a plan's scratch memory (gather/) in tokens, a multiple of kFa3TilePositions; 0
// for plans that do not gather. A phase with a longer context is not gathered.
int scratch_tokens(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits);

// The work of a phase, from upper bounds.
struct GatherWork {
  int64_t num_positions = 0;  // to copy
  int64_t num_pairs = 0;      // of a query row (a token's head) and a position that it attends to,
                              // per KV head
};

// Whether FA3 over gathered copies is faster than the alternative: FA3 over pages for 16-bit
// caches, FA2 for FP8. Copying a position costs a fixed time, and each query row that attends to
// the position saves some time. The thresholds are in query rows per position. A prompt of 1,024
// tokens with 64:8 heads is just above the threshold for 16-bit caches: on an H200, the copies make
// one such prompt 3 % faster, and 16 of them 17 %.
constexpr bool gather_pays(const GatherWork& work, bool is_fp8) {
  const int64_t min_rows_per_position = is_fp8 ? 256 : 4096;
  return work.num_positions > 0 && work.num_pairs >= min_rows_per_position * work.num_positions;
}

// Consecutive requests of a phase whose attention one launch computes. If the phase gathers, they
// are gathered together first.
struct RequestGroup : GatherGroup {
  int first_tile = 0;
  int num_tiles = 0;

  friend bool operator==(const RequestGroup&, const RequestGroup&) = default;
};

PhaseShape choose_shape(const AttentionShape& shape, const AttentionBatch& batch,
                        const PhaseRange& range, DeviceLimits limits);

// Writes the indices of `lengths` to `order`, longest first, by classes of nearly equal lengths.
// Indices of one class keep their order.
void sort_by_length(const std::vector<uint32_t>& lengths, std::vector<int32_t>& order);

// Upper bounds over all batches within the limits.
int64_t max_tiles(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits);
int64_t max_partial_rows(const AttentionShape& shape, DeviceLimits limits);

// One phase's arrays, contiguous in memory.
struct PlanArrays {
  int32_t* chunk_tokens = nullptr;   // [1]
  int32_t* tile_req = nullptr;       // [num_tiles]
  int32_t* tile_rows = nullptr;      // [num_tiles], index among the request's tiles
  int32_t* tile_chunk = nullptr;     // [num_tiles], index among the request's chunks
  int32_t* page_start = nullptr;     // [num_reqs + 1], first entry in block_table
  int32_t* partial_start = nullptr;  // [num_reqs], first row of partial results
  int32_t* scratch_start = nullptr;  // [num_reqs], if contexts are gathered; else unset
  bool* tile_valid = nullptr;        // [num_tiles]; false: an idle tile, whose other entries are
                                     // not set
};
// The arrays' size in words of 4 bytes.
int64_t plan_words(int64_t num_tiles, int64_t num_reqs);
// Returns pointers to the arrays in `words`, which has plan_words().
PlanArrays place_arrays(int32_t* words, int num_tiles, int num_reqs);

class Planner {
 public:
  // Allocates for the largest batch within the limits, so that later calls allocate nothing.
  void reserve(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits);
  // Fills the arrays for the requests of `range`.
  void fill(const AttentionShape& shape, const AttentionBatch& batch, const PhaseRange& range,
            const PhaseShape& phase, DeviceLimits limits, const PlanArrays& arrays);
  // The launches of the last fill(), in order; exactly one without gathering.
  std::span<const RequestGroup> groups() const { return groups_; }

 private:
  // An upper bound of one request's work.
  struct RequestWork {
    uint32_t num_tiles;  // of its rows
    uint32_t num_units;  // of kSplitUnit positions; with a window, only those within it
  };

  void measure(const AttentionShape& shape, const AttentionBatch& batch, const PhaseRange& range,
               const PhaseShape& phase);
  // Chunk lengths in units of kSplitUnit positions.
  uint32_t choose_chunk(uint32_t num_tiles, uint32_t num_resident_blocks) const;
  uint32_t shortest_chunk(uint32_t budget) const;
  uint64_t count_tiles(uint32_t chunk) const;
  void fill_fa2(uint32_t chunk, int num_tiles, const PlanArrays& arrays);
  void group_requests(const AttentionBatch& batch, const PhaseRange& range, const PhaseShape& phase,
                      DeviceLimits limits, const PlanArrays& arrays);
  void fill_fa3(const AttentionBatch& batch, const PhaseRange& range, const RequestGroup& group,
                const PlanArrays& arrays);

  struct Tile {
    int32_t req, rows;
  };

  std::vector<RequestWork> req_work_;
  std::vector<RequestGroup> groups_;
  std::vector<int64_t> gathered_tokens_;  // per request
  std::vector<Tile> tiles_;
  std::vector<uint32_t> lengths_;  // the lengths that order_ sorts
  std::vector<int32_t> order_;     // longest first
};

}  // namespace quire::cuda::flashinfer_backend
