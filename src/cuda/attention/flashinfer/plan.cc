#include "cuda/attention/flashinfer/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/numbers.h"
#include "cuda/attention/flashinfer/kernel.h"

namespace quire::cuda::flashinfer_backend {
namespace {

// The chunk length of a phase without chunks: longer than any context.
constexpr int32_t kNoSplit = std::numeric_limits<int32_t>::max();
// Thread blocks that are resident on one SM.
constexpr int kBlocksPerSm = 2;
constexpr int kMaxTileRows = 128;
// Thread blocks that run one after another in one resident slot: more rounds balance uneven
// lengths. Starting a thread block takes about as long as kStartUnits units (of kSplitUnit
// positions).
constexpr int kMaxRounds = 4;
constexpr uint32_t kStartUnits = 1;
// FA3 is chosen if the average request has at least this many tokens. It neither packs heads nor
// splits contexts, so fewer tokens cost as much as 128. On an H200, FA2 is at least as fast up to
// 64 tokens, and FA3 from 128 on, except for a single request over a long prefix.
constexpr int kMinFa3Tokens = 96;
// Lengths of 32 bits are sorted by class, with eight classes per power of two.
constexpr int kClassBits = 3;
constexpr int kNumLengthClasses = 33 << kClassBits;

int64_t group_size(const AttentionShape& shape) {
  return shape.num_heads / shape.num_kv_heads;
}

// FlashInfer makes the same choice, by the rows of an average request. With head_dim 256 there are
// not enough registers for 128 rows.
int choose_tile_rows(int64_t rows_per_req, int head_dim) {
  if (rows_per_req <= 16) return 16;
  return rows_per_req > 64 && head_dim < 256 ? kMaxTileRows : 64;
}

int64_t num_tiles_of(const AttentionShape& shape, const AttentionBatch& batch, int req,
                     const PhaseShape& phase) {
  const int64_t group = is_fa3(phase.kernel) ? 1 : group_size(shape);
  return ceil_div(q_len_of(batch, req) * group, int64_t{phase.tile_rows});
}

// Whether a phase is gathered: every context fits into the scratch memory, and gathering is faster.
bool is_gathered(const AttentionShape& shape, const AttentionBatch& batch, const PhaseRange& range,
                 DeviceLimits limits) {
  GatherWork work;
  for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
    const int64_t q_len = q_len_of(batch, req);
    const int64_t kv_len = batch.kv_len_bound[static_cast<size_t>(req)];
    if (gathered_tokens(q_len_of(batch, req), static_cast<int>(kv_len), kFa3TilePositions) >
        limits.scratch_tokens) {
      return false;
    }
    if (kv_len == 0) continue;  // padding
    work.num_positions += kv_len;
    work.num_pairs += group_size(shape) * (q_len * kv_len - q_len * (q_len - 1) / 2);
  }
  return gather_pays(work, shape.kv == DType::kF8E4M3);
}

KernelKind choose_kernel(const AttentionShape& shape, const AttentionBatch& batch,
                         const PhaseRange& range, DeviceLimits limits) {
  if (range.num_tokens / range.num_reqs < kMinFa3Tokens) return KernelKind::kFa2;
  if (is_gathered(shape, batch, range, limits)) return KernelKind::kFa3Gathered;
  return limits.has_fa3 ? KernelKind::kFa3 : KernelKind::kFa2;
}

size_t length_class(uint32_t length) {
  constexpr uint32_t kMask = (1U << kClassBits) - 1;
  const int width = std::bit_width(length);
  const uint32_t next_bits = width > kClassBits ? (length >> (width - 1 - kClassBits)) & kMask : 0U;
  return (static_cast<size_t>(width) << kClassBits) + next_bits;
}

}  // namespace

void sort_by_length(const std::vector<uint32_t>& lengths, std::vector<int32_t>& order) {
  std::array<int32_t, kNumLengthClasses + 1> next = {};  // index in `order`, per class
  const auto class_of = [](uint32_t length) {
    return kNumLengthClasses - 1 - length_class(length);
  };
  for (const uint32_t length : lengths) ++next[class_of(length) + 1];
  for (size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  order.resize(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    order[static_cast<size_t>(next[class_of(lengths[i])]++)] = static_cast<int32_t>(i);
  }
}

// FlashInfer counts the positions of the whole block table in 32 bits.
Status check_positions(const AttentionShape& shape, int64_t max_pages, int num_reqs) {
  const int64_t last_position = max_pages * shape.page_size * num_reqs;
  if (last_position <= std::numeric_limits<int32_t>::max()) return {};
  return unimplemented(fmt::format(
      "[flashinfer] the block table has too many positions; got {}, expected at most {}; lower "
      "`max_num_seqs` or `max_model_len`",
      last_position, std::numeric_limits<int32_t>::max()));
}

// FlashInfer indexes the elements of a step's queries with uint32_t.
Status check_queries(const AttentionShape& shape, int max_num_tokens) {
  const int64_t elements = int64_t{max_num_tokens} * shape.num_heads * shape.head_dim;
  if (elements <= std::numeric_limits<uint32_t>::max()) return {};
  return unimplemented(
      fmt::format("[flashinfer] a step's queries have too many elements ({} tokens × {} heads × "
                  "head_dim {}); got {}, expected at most {}; lower "
                  "`max_num_batched_tokens`",
                  max_num_tokens, shape.num_heads, shape.head_dim, elements,
                  std::numeric_limits<uint32_t>::max()));
}

bool has_aligned_strides(const KvCacheView& kv) {
  const auto align = static_cast<int64_t>(16 / dtype_bytes(kv.dtype));
  for (const int64_t stride : {kv.page_stride_k, kv.head_stride_k, kv.token_stride_k,
                               kv.page_stride_v, kv.head_stride_v, kv.token_stride_v}) {
    if (stride < 0 || stride > std::numeric_limits<uint32_t>::max() || stride % align != 0) {
      return false;
    }
  }
  return true;
}

DeviceLimits device_limits(const AttentionShape& shape, const DeviceInfo& device) {
  const int num_resident = device.num_sms * kBlocksPerSm;
  const bool fits_fa3 = device.device.compute_capability == 90 &&
                        (shape.head_dim == 64 || shape.head_dim == 128) && shape.window == 0 &&
                        shape.softcap == 0.0F;
  return {.num_resident_blocks = std::max(1, num_resident / shape.num_kv_heads),
          .has_fa3 = fits_fa3 && shape.q == shape.kv,
          .can_gather = fits_fa3};
}

int scratch_tokens(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits) {
  static_assert(kFa3TilePositions % kGatherTile == 0);
  if (!limits.can_gather || largest.use.phase != Phase::kPrefill) return 0;
  return cuda::scratch_tokens(shape, largest, kFa3TilePositions);
}

PhaseShape choose_shape(const AttentionShape& shape, const AttentionBatch& batch,
                        const PhaseRange& range, DeviceLimits limits) {
  PhaseShape phase;
  if (range.num_reqs == 0) return phase;
  phase.kernel = choose_kernel(shape, batch, range, limits);
  const bool fa3 = is_fa3(phase.kernel);
  phase.tile_rows =
      fa3 ? kFa3TileTokens
          : choose_tile_rows(range.num_tokens * group_size(shape) / range.num_reqs, shape.head_dim);
  int64_t num_tiles = 0;
  for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
    num_tiles += num_tiles_of(shape, batch, req, phase);
  }
  const int budget = limits.num_resident_blocks * kMaxRounds;
  phase.split = !fa3 && num_tiles * 2 <= budget && range.max_kv_len > kSplitUnit;
  if (!phase.split) {
    phase.num_tiles = static_cast<int>(num_tiles);
  } else {
    // A few requests fill one round evenly; more thread blocks would be idle and only cost time.
    phase.num_tiles =
        num_tiles * 4 <= limits.num_resident_blocks ? limits.num_resident_blocks : budget;
  }
  return phase;
}

// A request's last tile may be partly filled. If the average request has no more rows than a tile,
// there are at most two tiles per request; otherwise tiles have at least 64 rows.
int64_t max_tiles(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits) {
  const int64_t unsplit =
      2 * int64_t{largest.max_num_reqs} + largest.max_num_tokens * group_size(shape) / 64;
  return std::max<int64_t>(int64_t{limits.num_resident_blocks} * kMaxRounds, unsplit);
}

// A tile writes one partial row per token.
int64_t max_partial_rows(const AttentionShape& shape, DeviceLimits limits) {
  return int64_t{limits.num_resident_blocks} * kMaxRounds * kMaxTileRows / group_size(shape);
}

int64_t plan_words(int64_t num_tiles, int64_t num_reqs) {
  const int64_t valid_words = ceil_div(num_tiles, 4);  // tile_valid has one byte per tile
  return 3 * num_tiles + 3 * num_reqs + 2 + valid_words;
}

PlanArrays place_arrays(int32_t* words, int num_tiles, int num_reqs) {
  PlanArrays arrays;
  arrays.chunk_tokens = words;
  arrays.tile_req = arrays.chunk_tokens + 1;
  arrays.tile_rows = arrays.tile_req + num_tiles;
  arrays.tile_chunk = arrays.tile_rows + num_tiles;
  arrays.page_start = arrays.tile_chunk + num_tiles;
  arrays.partial_start = arrays.page_start + num_reqs + 1;
  arrays.scratch_start = arrays.partial_start + num_reqs;
  arrays.tile_valid = reinterpret_cast<bool*>(arrays.scratch_start + num_reqs);
  return arrays;
}

// max_tiles() exceeds max_num_reqs, so the memory also suffices to sort the requests' lengths.
void Planner::reserve(const AttentionShape& shape, const PlanLimits& largest, DeviceLimits limits) {
  const auto num_reqs = static_cast<size_t>(largest.max_num_reqs);
  const auto num_tiles = static_cast<size_t>(max_tiles(shape, largest, limits));
  req_work_.reserve(num_reqs);
  groups_.reserve(num_reqs + 1);
  gathered_tokens_.reserve(num_reqs);
  tiles_.reserve(num_tiles);
  lengths_.reserve(num_tiles);
  order_.reserve(num_tiles);
}

void Planner::measure(const AttentionShape& shape, const AttentionBatch& batch,
                      const PhaseRange& range, const PhaseShape& phase) {
  req_work_.resize(static_cast<size_t>(range.num_reqs));
  for (int i = 0; i < range.num_reqs; ++i) {
    const int req = range.first_req + i;
    const int64_t num_units = num_chunks(batch.kv_len_bound[static_cast<size_t>(req)], shape.window,
                                         phase.tile_rows, kSplitUnit);
    req_work_[static_cast<size_t>(i)] = {
        static_cast<uint32_t>(num_tiles_of(shape, batch, req, phase)),
        static_cast<uint32_t>(num_units)};
  }
}

uint64_t Planner::count_tiles(uint32_t chunk) const {
  uint64_t num_tiles = 0;
  for (const RequestWork& work : req_work_) {
    num_tiles += work.num_tiles * ceil_div(work.num_units, chunk);
  }
  return num_tiles;
}

// Returns the shortest chunk for which the chunks of all tiles stay within the budget. If no chunk
// is short enough, returns the number of units of the longest request.
uint32_t Planner::shortest_chunk(uint32_t budget) const {
  uint64_t total = 0;
  uint32_t high = 1;
  for (const RequestWork& work : req_work_) {
    total += uint64_t{work.num_tiles} * work.num_units;
    high = std::max(high, work.num_units);
  }
  auto low =
      static_cast<uint32_t>(std::clamp<uint64_t>(ceil_div<uint64_t>(total, budget), 1, high));
  while (low < high) {
    const uint32_t mid = low + (high - low) / 2;
    if (count_tiles(mid) > budget) {
      low = mid + 1;
    } else {
      high = mid;
    }
  }
  return low;
}

// Chooses the chunk length with the shortest estimated time over all numbers of rounds.
uint32_t Planner::choose_chunk(uint32_t num_tiles, uint32_t num_resident_blocks) const {
  uint32_t best = 0;
  uint64_t best_time = std::numeric_limits<uint64_t>::max();
  for (uint32_t budget = num_resident_blocks; budget <= num_tiles; budget *= 2) {
    const uint32_t chunk = shortest_chunk(budget);
    const uint64_t rounds = ceil_div<uint64_t>(count_tiles(chunk), num_resident_blocks);
    const uint64_t time = rounds * (chunk + kStartUnits);
    if (time >= best_time) continue;
    best_time = time;
    best = chunk;
  }
  return best;
}

void Planner::fill_fa2(uint32_t chunk, int num_tiles, const PlanArrays& arrays) {
  lengths_.clear();
  for (const RequestWork& work : req_work_) lengths_.push_back(work.num_units);
  sort_by_length(lengths_, order_);
  int tile = 0;
  const auto add_tile = [&](int32_t req, int32_t rows, int32_t chunk_idx) {
    arrays.tile_req[tile] = req;
    arrays.tile_rows[tile] = rows;
    arrays.tile_chunk[tile++] = chunk_idx;
  };
  for (const int32_t i : order_) {
    const RequestWork& work = req_work_[static_cast<size_t>(i)];
    const auto num_chunks = static_cast<int32_t>(ceil_div(work.num_units, chunk));
    // The last rows of a prompt attend to the most positions, so they come first.
    for (auto rows = static_cast<int32_t>(work.num_tiles) - 1; rows >= 0; --rows) {
      for (int32_t c = 0; c < num_chunks; ++c) add_tile(i, rows, c);
    }
  }
  std::fill_n(arrays.tile_valid, tile, true);
  std::fill_n(arrays.tile_valid + tile, num_tiles - tile, false);
}

void Planner::group_requests(const AttentionBatch& batch, const PhaseRange& range,
                             const PhaseShape& phase, DeviceLimits limits,
                             const PlanArrays& arrays) {
  if (phase.kernel != KernelKind::kFa3Gathered) {
    groups_.assign(1, {{.num_reqs = range.num_reqs}, 0, phase.num_tiles});
    return;
  }
  list_gathered_tokens(batch, range, kFa3TilePositions, gathered_tokens_);
  pack_groups(gathered_tokens_, limits.scratch_tokens, groups_);
  int next_tile = 0;
  for (RequestGroup& group : groups_) {
    group.first_tile = next_tile;
    int32_t next_token = 0;
    for (int i = group.first_req; i < group.first_req + group.num_reqs; ++i) {
      group.num_tiles += static_cast<int>(req_work_[static_cast<size_t>(i)].num_tiles);
      arrays.scratch_start[i] = next_token;
      next_token += static_cast<int32_t>(gathered_tokens_[static_cast<size_t>(i)]);
    }
    next_tile += group.num_tiles;
  }
}

// Orders a group's tiles by the number of positions that each attends to.
void Planner::fill_fa3(const AttentionBatch& batch, const PhaseRange& range,
                       const RequestGroup& group, const PlanArrays& arrays) {
  tiles_.clear();
  lengths_.clear();
  for (int32_t i = group.first_req; i < group.first_req + group.num_reqs; ++i) {
    const int req = range.first_req + i;
    const int32_t q_len = q_len_of(batch, req);
    const int32_t kv_len = batch.kv_len_bound[static_cast<size_t>(req)];
    const auto count = static_cast<int32_t>(req_work_[static_cast<size_t>(i)].num_tiles);
    for (int32_t rows = count - 1; rows >= 0; --rows) {
      const int32_t unseen = std::max(0, q_len - (rows + 1) * kFa3TileTokens);
      tiles_.push_back({i, rows});
      lengths_.push_back(static_cast<uint32_t>(std::max(0, kv_len - unseen)));
    }
  }
  sort_by_length(lengths_, order_);
  for (int i = 0; i < group.num_tiles; ++i) {
    const Tile tile = tiles_[static_cast<size_t>(order_[static_cast<size_t>(i)])];
    arrays.tile_req[group.first_tile + i] = tile.req;
    arrays.tile_rows[group.first_tile + i] = tile.rows;
  }
}

void Planner::fill(const AttentionShape& shape, const AttentionBatch& batch,
                   const PhaseRange& range, const PhaseShape& phase, DeviceLimits limits,
                   const PlanArrays& arrays) {
  measure(shape, batch, range, phase);
  const uint32_t chunk = phase.split
                             ? choose_chunk(static_cast<uint32_t>(phase.num_tiles),
                                            static_cast<uint32_t>(limits.num_resident_blocks))
                             : uint32_t{kNoSplit};
  *arrays.chunk_tokens = phase.split ? static_cast<int32_t>(chunk * kSplitUnit) : kNoSplit;
  int32_t next_row = 0;
  for (int i = 0; i < range.num_reqs; ++i) {
    arrays.page_start[i] = static_cast<int32_t>(i * batch.max_pages);
    arrays.partial_start[i] = next_row;
    next_row += q_len_of(batch, range.first_req + i) *
                static_cast<int32_t>(ceil_div(req_work_[static_cast<size_t>(i)].num_units, chunk));
  }
  arrays.page_start[range.num_reqs] = static_cast<int32_t>(range.num_reqs * batch.max_pages);
  group_requests(batch, range, phase, limits, arrays);
  if (!is_fa3(phase.kernel)) return fill_fa2(chunk, phase.num_tiles, arrays);
  for (const RequestGroup& group : groups_) fill_fa3(batch, range, group, arrays);
}

}  // namespace quire::cuda::flashinfer_backend
