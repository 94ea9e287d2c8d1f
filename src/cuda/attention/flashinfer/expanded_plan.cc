#include "cuda/attention/flashinfer/expanded_plan.h"

#include <algorithm>

#include "base/numbers.h"
#include "cuda/attention/flashinfer/plan.h"
#include "cuda/attention/gather/gather.h"

namespace quire::cuda::flashinfer_backend {
namespace {

// Padding requests have length 0. They are planned as prompts without context, so that padding-only
// prompts at start load all kernels.
int32_t kv_len_of(const AttentionBatch& batch, int req) {
  return std::max(q_len_of(batch, req), batch.kv_len_bound[static_cast<size_t>(req)]);
}

// The end of the positions that a tile of query tokens attends to.
int32_t tile_kv_end(int32_t q_len, int32_t kv_len, int32_t tile) {
  return kv_len - q_len + std::min(q_len, (tile + 1) * kExpandedTile);
}

int32_t num_tiles_of(int32_t q_len) {
  return ceil_div(q_len, kExpandedTile);
}

// An upper bound on the number of chunks with a part of one request. Padding may be longer than any
// context.
int64_t max_parts(const PlanLimits& limits, int max_rows) {
  return ceil_div(int64_t{std::max(limits.max_kv_len, limits.max_num_tokens)}, int64_t{max_rows});
}

}  // namespace

int64_t expanded_row_bytes(const AttentionShape& shape) {
  const int64_t elements = shape.num_heads * per_expanded_pair(expanded_dims(shape)) + kLatentDim;
  return elements * static_cast<int64_t>(dtype_bytes(shape.q));
}

int max_expanded_rows(const AttentionShape& shape, const PlanLimits& limits, int64_t max_bytes) {
  const int64_t needed =
      int64_t{limits.max_num_reqs} * round_up(int64_t{limits.max_kv_len}, kExpandedTile);
  const int64_t fitting = max_bytes / expanded_row_bytes(shape) / kExpandedTile * kExpandedTile;
  return static_cast<int>(std::max<int64_t>(kExpandedTile, std::min(needed, fitting)));
}

ExpansionWork expansion_work(const AttentionBatch& batch, const PhaseRange& range) {
  ExpansionWork work;
  for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
    const int32_t q_len = q_len_of(batch, req);
    const int32_t kv_len = kv_len_of(batch, req);
    work.num_tokens += q_len;
    if (q_len > 0) work.num_positions += kv_len;
    work.num_pairs += int64_t{q_len} * kv_len - int64_t{q_len} * (q_len - 1) / 2;
    for (int32_t tile = 0; tile < num_tiles_of(q_len); ++tile) {
      work.num_tile_pairs +=
          kExpandedTile * round_up(int64_t{tile_kv_end(q_len, kv_len, tile)}, kExpandedTile);
    }
  }
  return work;
}

int64_t expanded_words(int64_t num_tiles, int64_t num_reqs) {
  return num_reqs + 2 * num_tiles;
}

ExpandedArrays place_expanded_arrays(int32_t* words, int64_t num_tiles, int64_t num_reqs) {
  return {
      .row_start = words, .tile_req = words + num_reqs, .tile_idx = words + num_reqs + num_tiles};
}

int64_t max_expanded_tiles(const PlanLimits& limits, int max_rows) {
  const int64_t num_tiles = limits.max_num_tokens / kExpandedTile + limits.max_num_reqs;
  return num_tiles * max_parts(limits, max_rows);
}

void ExpandedPlanner::reserve(const PlanLimits& limits, int max_rows) {
  const auto num_reqs = static_cast<size_t>(limits.max_num_reqs);
  const auto num_tiles = static_cast<size_t>(max_expanded_tiles(limits, max_rows));
  chunks_.reserve(num_reqs * static_cast<size_t>(max_parts(limits, max_rows)));
  row_start_.reserve(num_reqs);
  tiles_.reserve(num_tiles);
  listed_.reserve(num_tiles);
  lengths_.reserve(num_tiles);
  order_.reserve(num_tiles);
}

void ExpandedPlanner::plan(const AttentionBatch& batch, const PhaseRange& range, int max_rows) {
  chunks_.clear();
  tiles_.clear();
  row_start_.assign(static_cast<size_t>(range.num_reqs), 0);
  for (int32_t i = 0; i < range.num_reqs; ++i) {
    const int req = range.first_req + i;
    const int32_t kv_len = q_len_of(batch, req) > 0 ? kv_len_of(batch, req) : 0;
    const int rows = round_up(kv_len, kExpandedTile);
    if (rows > max_rows) {
      add_parts(i, kv_len, max_rows);
    } else {
      add_whole(i, rows, max_rows);
    }
  }
  for (ExpandedChunk& chunk : chunks_) list_tiles(batch, range, chunk);
}

void ExpandedPlanner::add_whole(int32_t req, int rows, int max_rows) {
  if (chunks_.empty() || chunks_.back().is_part() || chunks_.back().num_rows + rows > max_rows) {
    chunks_.push_back({.first_req = req});
  }
  ExpandedChunk& chunk = chunks_.back();
  row_start_[static_cast<size_t>(req)] = chunk.num_rows;
  chunk.num_rows += rows;
  ++chunk.num_reqs;
}

void ExpandedPlanner::add_parts(int32_t req, int kv_len, int max_rows) {
  for (int start = 0; start < kv_len; start += max_rows) {
    const int num_positions = std::min(max_rows, kv_len - start);
    chunks_.push_back({.first_req = req,
                       .num_reqs = 1,
                       .num_rows = round_up(num_positions, kExpandedTile),
                       .kv_start = start,
                       .kv_end = start + num_positions});
  }
}

// The tiles with the most positions come first. Tiles whose positions end before the chunk are left
// out.
void ExpandedPlanner::list_tiles(const AttentionBatch& batch, const PhaseRange& range,
                                 ExpandedChunk& chunk) {
  listed_.clear();
  lengths_.clear();
  for (int32_t i = chunk.first_req; i < chunk.first_req + chunk.num_reqs; ++i) {
    const int32_t q_len = q_len_of(batch, range.first_req + i);
    const int32_t kv_len = kv_len_of(batch, range.first_req + i);
    for (int32_t tile = num_tiles_of(q_len) - 1; tile >= 0; --tile) {
      const int32_t end = std::min(chunk.kv_end, tile_kv_end(q_len, kv_len, tile));
      if (chunk.continues() && end <= chunk.kv_start) continue;
      listed_.push_back({i, tile});
      lengths_.push_back(static_cast<uint32_t>(end - chunk.kv_start));
    }
  }
  sort_by_length(lengths_, order_);
  chunk.first_tile = static_cast<int>(tiles_.size());
  chunk.num_tiles = static_cast<int>(listed_.size());
  for (const int32_t i : order_) tiles_.push_back(listed_[static_cast<size_t>(i)]);
}

void ExpandedPlanner::fill(const ExpandedArrays& arrays) const {
  std::ranges::copy(row_start_, arrays.row_start);
  for (size_t i = 0; i < tiles_.size(); ++i) {
    arrays.tile_req[i] = tiles_[i].req;
    arrays.tile_idx[i] = tiles_[i].idx;
  }
}

}  // namespace quire::cuda::flashinfer_backend
