#include "cuda/attention/flashinfer/latent_plan.h"

#include <algorithm>

#include "base/numbers.h"
#include "cuda/attention/gather/gather.h"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kNumMergeArrays = 5;
constexpr int64_t kManyParts = 64;

// The decode kernel also serves requests of two tiles, each of which reads the cache. FlashInfer's
// kernel reads it once. But with 16 heads on an H200 it takes at least 4 us longer for one request,
// and more than three times as long with an FP8 cache. The number of requests is an estimate from
// these times.
constexpr int kMaxDecodeTiles = 2;
constexpr int kMaxReqsOfTwoTiles = 8;

// Measured on an H200, in units of LatentGrid::tile_positions().
struct Costs {
  int64_t work;   // of loading a tile's queries and storing its results
  int64_t merge;  // of partial results; a batch without split tiles saves it
  // Shorter parts cost more to merge than they save. min_units applies to any tile,
  // min_units_of_many to a tile with kManyParts parts.
  int64_t min_units;
  int64_t min_units_of_many;
  // With at most one tile per worker, tiles are not split if the longest one exceeds the average
  // work per worker by at most this fraction. Memory bandwidth limits such a batch, although some
  // SMs are idle.
  double spare_share;
};

// A unit is 72 KiB of a BF16 cache.
constexpr Costs kFlashInferCosts = {
    .work = 2, .merge = 2, .min_units = 2, .min_units_of_many = 2, .spare_share = 0.0};
// A unit is 36 KiB. Positions of the next tile are loaded while one is completed.
constexpr Costs kDecodeCosts = {
    .work = 1, .merge = 3, .min_units = 1, .min_units_of_many = 4, .spare_share = 1.0 / 16};

const Costs& costs_of(LatentKernel kernel) {
  return kernel == LatentKernel::kDecode ? kDecodeCosts : kFlashInferCosts;
}

}  // namespace

LatentGrid choose_latent_grid(const AttentionShape& shape, const PhaseRange& range, int num_sms) {
  const int64_t rows = int64_t{range.num_tokens} * shape.num_heads;
  const int64_t rows_per_req = rows / std::max(1, range.num_reqs);
  const bool has_two_tiles = shape.kv == DType::kF8E4M3 || range.num_reqs <= kMaxReqsOfTwoTiles;
  const int max_rows = (has_two_tiles ? kMaxDecodeTiles : 1) * kLatentDecodeRows;
  if (rows_per_req <= max_rows && shape.num_heads <= max_rows) {
    return {.kernel = LatentKernel::kDecode,
            .tile_blocks = 1,
            .num_workers = std::min(num_sms, kMaxLatentParts)};
  }
  const bool is_wide = shape.num_heads > kLatentBlockRows || rows_per_req > kLatentBlockRows;
  const int tile_blocks = is_wide ? 2 : 1;
  return {.kernel = LatentKernel::kFlashInfer,
          .tile_blocks = tile_blocks,
          .num_workers = std::max(1, num_sms / tile_blocks)};
}

LatentArrays place_latent_arrays(void* memory, int num_sms) {
  LatentArrays arrays;
  arrays.first_works = static_cast<LatentWork*>(memory);
  arrays.arrivals = reinterpret_cast<unsigned long long*>(arrays.first_works + num_sms);
  arrays.merge_row = reinterpret_cast<int32_t*>(arrays.arrivals + num_sms);
  arrays.merge_row_end = arrays.merge_row + num_sms;
  arrays.merge_partial = arrays.merge_row_end + num_sms;
  arrays.merge_partial_end = arrays.merge_partial + num_sms;
  arrays.merge_stride = arrays.merge_partial_end + num_sms;
  arrays.worker_start = arrays.merge_stride + num_sms;
  const size_t num_bytes = latent_array_bytes(num_sms, 0);
  arrays.works = reinterpret_cast<LatentWork*>(static_cast<std::byte*>(memory) + num_bytes);
  return arrays;
}

size_t latent_array_bytes(int num_sms, int64_t num_works) {
  const auto num = static_cast<size_t>(num_sms);
  const size_t num_words = kNumMergeArrays * num + num + 1;
  return round_up(
             num * (sizeof(LatentWork) + sizeof(unsigned long long)) + num_words * sizeof(int32_t),
             alignof(LatentWork)) +
         static_cast<size_t>(num_works) * sizeof(LatentWork);
}

// Each request's last tile may be partly filled, and each worker except the last ends with at most
// one split tile.
int64_t max_latent_works(const AttentionShape& shape, const PlanLimits& limits, int num_sms) {
  const int num_heads = shape.num_heads;
  const int64_t num_rows = int64_t{limits.max_num_tokens} * num_heads;
  const LatentGrid smallest = {.kernel = num_heads <= kMaxDecodeTiles * kLatentDecodeRows
                                             ? LatentKernel::kDecode
                                             : LatentKernel::kFlashInfer,
                               .tile_blocks = num_heads <= kLatentBlockRows ? 1 : 2};
  return limits.max_num_reqs + num_rows / smallest.used_rows(num_heads) + num_sms;
}

// Each worker except the last splits at most one tile. n splits produce at most 2 n parts, each
// with the rows of a tile.
int64_t max_latent_partial_rows(int num_sms) {
  return int64_t{2} * num_sms * kLatentBlockRows;
}

void LatentPlanner::reserve(const AttentionShape& shape, const PlanLimits& limits, int num_sms) {
  tiles_.reserve(static_cast<size_t>(max_latent_works(shape, limits, num_sms)));
  cuts_.reserve(static_cast<size_t>(num_sms));
}

int64_t LatentPlanner::measure(const AttentionShape& shape, const AttentionBatch& batch,
                               const PhaseRange& range, const LatentGrid& grid) {
  grid_ = grid;
  list_tiles(shape, batch, range);
  choose_budget();
  return static_cast<int64_t>(tiles_.size()) + grid_.num_workers;
}

void LatentPlanner::list_tiles(const AttentionShape& shape, const AttentionBatch& batch,
                               const PhaseRange& range) {
  tiles_.clear();
  const int32_t used_rows = grid_.used_rows(shape.num_heads);
  for (int32_t i = 0; i < range.num_reqs; ++i) {
    const int req = range.first_req + i;
    const int32_t first_token = batch.query_start.host[req];
    const int32_t q_len = q_len_of(batch, req);
    const int32_t kv_len = batch.kv_len_bound[static_cast<size_t>(req)];
    const int32_t rows = q_len * shape.num_heads;
    for (int32_t row = 0; row < rows; row += used_rows) {
      const int32_t num_rows = std::min(used_rows, rows - row);
      const int32_t end_token = (row + num_rows - 1) / shape.num_heads + 1;
      tiles_.push_back({.req = i,
                        .row = row,
                        .num_rows = num_rows,
                        .out_row = first_token * shape.num_heads + row,
                        .kv_end = std::max(0, kv_len - q_len + end_token),
                        .q_len = q_len,
                        .later_tokens = q_len - end_token});
    }
  }
}

int64_t LatentPlanner::num_units(int32_t kv_end) const {
  return ceil_div(int64_t{kv_end}, int64_t{grid_.tile_positions()});
}

// Each split adds the cost of one work item, and a worker leaves up to this cost of its budget
// unused. The budget is increased by this cost, so that all tiles fit.
void LatentPlanner::choose_budget() {
  const Costs& costs = costs_of(grid_.kernel);
  int64_t total = 0;
  int64_t longest = 0;
  for (const Tile& tile : tiles_) {
    const int64_t cost = num_units(tile.kv_end) + costs.work;
    total += cost;
    longest = std::max(longest, cost);
  }
  const int64_t even = ceil_div(total, int64_t{grid_.num_workers});
  const int64_t min_units = std::clamp(ceil_div(longest - costs.work, kManyParts), costs.min_units,
                                       costs.min_units_of_many);
  budget_ = std::max(even, min_units) + costs.work;
  const auto spare = static_cast<int64_t>(static_cast<double>(budget_) * costs.spare_share);
  const int64_t longest_whole = budget_ + costs.merge + spare;
  one_each_ = static_cast<int64_t>(tiles_.size()) <= grid_.num_workers && longest <= longest_whole;
  if (one_each_) budget_ = std::max(budget_, longest);
}

int64_t LatentPlanner::fill(int num_sms, const LatentArrays& arrays) {
  cut_tiles(arrays);
  share_merges(num_sms, arrays);
  std::fill_n(arrays.arrivals, num_sms, 0);
  for (int worker = 0; worker < grid_.num_workers; ++worker) {
    const int32_t first = arrays.worker_start[worker];
    if (first < arrays.worker_start[worker + 1]) arrays.first_works[worker] = arrays.works[first];
  }
  return num_works_;
}

void LatentPlanner::cut_tiles(const LatentArrays& arrays) {
  const int64_t work_cost = costs_of(grid_.kernel).work;
  cuts_.clear();
  num_works_ = 0;
  int worker = 0;
  int64_t left = budget_;
  int32_t next_partial = 0;
  arrays.worker_start[0] = 0;
  const auto start_worker = [&] {
    arrays.worker_start[++worker] = static_cast<int32_t>(num_works_);
    left = budget_;
  };
  for (const Tile& tile : tiles_) {
    const auto add_part = [&](int64_t first, int32_t kv_end, bool is_cut) {
      const int32_t partial = is_cut ? next_partial : -1;
      if (is_cut) next_partial += tile.num_rows;
      arrays.works[num_works_++] = {
          .req = tile.req,
          .row = tile.row,
          .kv_start = static_cast<int32_t>(first * grid_.tile_positions()),
          .kv_end = kv_end,
          .partial = partial,
          .num_rows = tile.num_rows,
          .out_row = tile.out_row,
          .q_len = tile.q_len,
          .later_tokens = tile.later_tokens};
    };
    if (one_each_ && num_works_ > 0) start_worker();
    const int64_t units = num_units(tile.kv_end);
    const int32_t first_partial = next_partial;
    int32_t num_parts = 1;
    int64_t first = 0;
    while (worker + 1 < grid_.num_workers && units - first > left - work_cost) {
      const int64_t part = left - work_cost;
      if (part > 0) {
        add_part(first, static_cast<int32_t>((first + part) * grid_.tile_positions()), true);
        first += part;
        ++num_parts;
      }
      start_worker();
    }
    add_part(first, tile.kv_end, num_parts > 1);
    left -= units - first + work_cost;
    if (num_parts > 1) {
      number_parts(arrays.works + num_works_ - num_parts, num_parts);
      cuts_.push_back({tile, first_partial, num_parts});
    }
  }
  while (worker < grid_.num_workers) start_worker();
}

void LatentPlanner::number_parts(LatentWork* parts, int32_t num_parts) const {
  for (int32_t part = 0; part < num_parts; ++part) {
    parts[part].part = part;
    parts[part].num_parts = num_parts;
    parts[part].cut = static_cast<int32_t>(cuts_.size());
  }
}

// Distributes the rows of the split tiles over all thread blocks.
void LatentPlanner::share_merges(int num_sms, const LatentArrays& arrays) const {
  std::fill_n(arrays.merge_row, int64_t{kNumMergeArrays} * num_sms, 0);
  if (grid_.kernel == LatentKernel::kDecode || cuts_.empty()) return;
  const int num_blocks = grid_.num_workers * grid_.tile_blocks;
  const int32_t blocks_per_cut = num_blocks / static_cast<int32_t>(cuts_.size());
  int block = 0;
  for (const Cut& cut : cuts_) {
    const int32_t num_rows = cut.tile.num_rows;
    const int32_t rows_per_block = ceil_div(num_rows, blocks_per_cut);
    for (int32_t row = 0; row < num_rows; row += rows_per_block) {
      arrays.merge_row[block] = cut.tile.out_row + row;
      arrays.merge_row_end[block] = cut.tile.out_row + std::min(row + rows_per_block, num_rows);
      arrays.merge_partial[block] = cut.partial + row;
      arrays.merge_partial_end[block] = cut.partial + cut.num_parts * num_rows;
      arrays.merge_stride[block] = num_rows;
      ++block;
    }
  }
}

}  // namespace quire::cuda::flashinfer_backend
