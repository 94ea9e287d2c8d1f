#include "cuda/attention/flashinfer/latent_plan.h"

#include <algorithm>

#include "base/numbers.h"

namespace quire::cuda::flashinfer_backend {
namespace {

constexpr int kNumMergeArrays = 5;
// Costs in steps, each of which reads 72 KiB of a BF16 cache: to load a tile's queries and write
// its results; and to merge partial results, which a batch without cuts saves.
constexpr int64_t kWorkCost = 2;
constexpr int64_t kMergeCost = 2;
// Shorter parts cost more to merge than they save.
constexpr int64_t kMinSteps = 2;

int64_t num_steps(int32_t kv_end) {
  return ceil_div(int64_t{kv_end}, int64_t{kLatentStep});
}

}  // namespace

LatentGrid choose_latent_grid(const AttentionShape& shape, const PhaseRange& range, int num_sms) {
  const int64_t rows = int64_t{range.num_tokens} * shape.num_heads;
  const int64_t rows_per_req = rows / std::max(1, range.num_reqs);
  const bool is_wide = shape.num_heads > kLatentBlockRows || rows_per_req > kLatentBlockRows;
  const int tile_blocks = is_wide ? 2 : 1;
  return {.tile_blocks = tile_blocks, .num_workers = std::max(1, num_sms / tile_blocks)};
}

LatentArrays place_latent_arrays(void* memory, int num_sms) {
  auto* const words = static_cast<int32_t*>(memory);
  LatentArrays arrays;
  arrays.worker_start = words;
  arrays.merge_row = arrays.worker_start + num_sms + 1;
  arrays.merge_row_end = arrays.merge_row + num_sms;
  arrays.merge_partial = arrays.merge_row_end + num_sms;
  arrays.merge_partial_end = arrays.merge_partial + num_sms;
  arrays.merge_stride = arrays.merge_partial_end + num_sms;
  arrays.works = reinterpret_cast<LatentWork*>(arrays.merge_stride + num_sms);
  return arrays;
}

size_t latent_array_bytes(int num_sms, int64_t num_works) {
  const int64_t num_words = 1 + int64_t{1 + kNumMergeArrays} * num_sms;
  return static_cast<size_t>(num_words) * sizeof(int32_t) +
         static_cast<size_t>(num_works) * sizeof(LatentWork);
}

// Each request's last tile may be partly filled, and each worker but one ends with a cut at most.
int64_t max_latent_works(const AttentionShape& shape, const PlanLimits& limits, int num_sms) {
  const int64_t num_rows = int64_t{limits.max_num_tokens} * shape.num_heads;
  return limits.max_num_reqs + num_rows / kLatentBlockRows + num_sms;
}

// A worker makes at most one cut, which adds one part to a tile. A tile that has one has two parts
// at least.
int64_t max_latent_partial_rows(int num_sms) {
  return int64_t{2} * num_sms * kLatentBlockRows;
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
  for (int32_t i = 0; i < range.num_reqs; ++i) {
    const int req = range.first_req + i;
    const int32_t first_token = batch.query_start.host[req];
    const int32_t q_len = batch.query_start.host[req + 1] - first_token;
    const int32_t kv_len = batch.kv_len_bound[static_cast<size_t>(req)];
    const int32_t rows = q_len * shape.num_heads;
    for (int32_t row = 0; row < rows; row += grid_.tile_rows()) {
      const int32_t num_rows = std::min(grid_.tile_rows(), rows - row);
      const int32_t last_token = (row + num_rows - 1) / shape.num_heads;
      tiles_.push_back({.req = i,
                        .row = row,
                        .num_rows = num_rows,
                        .out_row = first_token * shape.num_heads + row,
                        .kv_end = std::max(0, kv_len - q_len + last_token + 1)});
    }
  }
}

// A cut costs kWorkCost again, and a worker leaves up to kWorkCost of its budget unused. The budget
// has as much to spare, so that all tiles fit.
void LatentPlanner::choose_budget() {
  int64_t total = 0;
  int64_t longest = 0;
  for (const Tile& tile : tiles_) {
    const int64_t cost = num_steps(tile.kv_end) + kWorkCost;
    total += cost;
    longest = std::max(longest, cost);
  }
  const int64_t even = ceil_div(total, int64_t{grid_.num_workers});
  budget_ = std::max(even, kMinSteps) + kWorkCost;
  one_each_ =
      static_cast<int64_t>(tiles_.size()) <= grid_.num_workers && longest <= budget_ + kMergeCost;
  if (one_each_) budget_ = std::max(budget_, longest);
}

int64_t LatentPlanner::fill(int num_sms, const LatentArrays& arrays) {
  cut_tiles(arrays);
  share_merges(num_sms, arrays);
  return num_works_;
}

void LatentPlanner::cut_tiles(const LatentArrays& arrays) {
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
      arrays.works[num_works_++] = {tile.req, tile.row, static_cast<int32_t>(first * kLatentStep),
                                    kv_end, partial};
    };
    if (one_each_ && num_works_ > 0) start_worker();
    const int64_t steps = num_steps(tile.kv_end);
    const int32_t first_partial = next_partial;
    int32_t num_parts = 1;
    int64_t first = 0;
    while (worker + 1 < grid_.num_workers && steps - first > left - kWorkCost) {
      const int64_t part = left - kWorkCost;
      if (part > 0) {
        add_part(first, static_cast<int32_t>((first + part) * kLatentStep), true);
        first += part;
        ++num_parts;
      }
      start_worker();
    }
    add_part(first, tile.kv_end, num_parts > 1);
    left -= steps - first + kWorkCost;
    if (num_parts > 1) cuts_.push_back({tile, first_partial, num_parts});
  }
  while (worker < grid_.num_workers) start_worker();
}

// Distributes the rows of the tiles that were cut over all thread blocks.
void LatentPlanner::share_merges(int num_sms, const LatentArrays& arrays) const {
  std::fill_n(arrays.merge_row, int64_t{kNumMergeArrays} * num_sms, 0);
  if (cuts_.empty()) return;
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
