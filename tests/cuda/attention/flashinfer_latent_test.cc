// Latent caches (multi-head latent attention) in the flashinfer backend: the plan, which needs no
// GPU, and the kernels: the decode kernel for up to 16 rows per request, or 32 in small batches and
// with FP8 caches, FlashInfer's above. Numbers of heads that do not divide a tile leave rows of it
// unused; the memory that those rows would read or write is poisoned or compared.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/numbers.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/flashinfer/latent_plan.h"
#include "cuda_attention_cases.h"

namespace quire::testing {
namespace {

namespace fi = cuda::flashinfer_backend;

constexpr int kNumSms = 132;
constexpr int kDimV = fi::kLatentDim;
constexpr int kDim = fi::kLatentDim + fi::kLatentRopeDim;

const Device kHopper = {
    .kind = DeviceKind::kCuda, .index = 0, .compute_capability = 90, .name = "Hopper"};

AttentionShape latent_shape(int num_heads, int page_size = 64, DType kv = DType::kBF16) {
  AttentionShape shape = make_attention_shape(num_heads, 1, kDim, page_size, kv);
  shape.head_dim_v = kDimV;
  shape.is_latent = true;
  shape.q = shape.out = kv == DType::kF16 ? kv : DType::kBF16;
  return shape;
}

using Reqs = std::vector<AttentionRequest>;

// Contexts that end around the ends of pages and of the kernel's tiles.
Reqs requests_around_tiles(int q_len) {
  Reqs reqs = {{q_len, 0, 1}, {q_len, q_len, 2}};
  for (const int end : {16, 32, 64, 128, 192, 1024}) {
    for (const int behind : {-1, 0, 1, q_len - 1, q_len}) {
      reqs.push_back({q_len, end + behind, reqs.size() + 1});
    }
  }
  return reqs;
}

std::vector<AttentionCase> latent_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    const auto add = [&](std::string name, int num_heads, int page_size, Reqs reqs, int q_len) {
      cases.push_back(
          {.name = fmt::format("{}_{}_heads_page{}_{}", name, num_heads, page_size, dtype_name(kv)),
           .shape = latent_shape(num_heads, page_size, kv),
           .reqs = std::move(reqs),
           .max_decode_q_len = q_len,
           // A power of two, because the kernel rounds an FP8 number times its scale to BF16.
           .k_scale = 0.0625F,
           .v_scale = 0.0625F});
    };
    for (const int q_len : {1, 2, 4, 5, 8}) {
      add(fmt::format("verify{}", q_len), 16, q_len % 2 == 0 ? 16 : 32,
          requests_around_tiles(q_len), q_len);
      add(fmt::format("verify{}", q_len), 128, 64,
          {{q_len, 300, 1}, {q_len, 0, 2}, {q_len, 65, 3}, {q_len, q_len, 4}}, q_len);
    }
    // Neither the scale nor most of its products are numbers of BF16.
    add("rounded_scale", 16, 64, requests_around_tiles(1), 1);
    cases.back().k_scale = cases.back().v_scale = 0.07F;
    for (const int num_heads : {1, 4, 8, 64}) {
      add("verify3", num_heads, 64, {{3, 700, 1}, {3, 0, 2}, {3, 64, 3}}, 3);
    }
    // GLM-4.7-Flash has 20 heads, and 10 or 5 in tensor parallelism. Tiles have whole tokens.
    for (const int num_heads : {5, 10, 20, 24, 40, 96}) {
      if (kv != DType::kBF16 && num_heads > 20) continue;
      add("verify1", num_heads, 64, requests_around_tiles(1), 1);
      add("verify1_few", num_heads, 16, {{1, 700, 1}, {1, 0, 2}, {1, 64, 3}, {1, 1, 4}}, 1);
      add("verify5", num_heads, 32, requests_around_tiles(5), 5);
      add("verify8_few", num_heads, 16, {{8, 300, 1}, {8, 0, 2}, {8, 65, 3}, {8, 8, 4}}, 8);
      add("mixed", num_heads, 64,
          {{1, 300, 1}, {1, 0, 2}, {33, 33, 3}, {64, 2000, 4}, {0, 0, 5}, {129, 129, 6}}, 1);
      add("prompts", num_heads, 32, {{300, 300, 1}, {64, 1500, 2}, {0, 0, 3}, {129, 0, 4}}, 0);
      add("one_long", num_heads, 64, {{1, 8192, 1}}, 1);
    }
    add("ragged", 20, 64, Reqs(200, {1, 777, 1}), 1);
    add("one_very_long", 20, 16, {{1, 20001, 1}}, 1);
    add("verify2", 8, 16, requests_around_tiles(2), 2);
    add("verify8", 2, 32, requests_around_tiles(8), 8);
    // The long prompt takes several tiles of 16 rows, because the other requests are short.
    add("prompts", 1, 16, {{40, 40, 1}, {5, 300, 2}, {1, 1, 3}, {0, 0, 4}, {1, 2000, 5}}, 0);
    // Each part has several units. There are more parts than lanes, so that lanes share a merged
    // piece.
    add("one_very_long", 16, 16, {{1, 20001, 1}}, 1);
    add("several", 16, 16, {{1, 3000, 1}, {1, 1, 2}, {1, 700, 3}, {1, 0, 4}, {1, 5000, 5}}, 1);
    add("one_long", 16, 64, {{1, 8192, 1}}, 1);
    add("two_long", 128, 64, {{1, 8192, 1}, {1, 5000, 2}}, 1);
    // Every worker has several tiles, and some tiles are cut.
    Reqs ragged;
    for (int i = 0; i < 256; ++i) ragged.push_back({1, 1 + i * 37 % 900, 1 + ragged.size()});
    ragged.push_back({1, 8192, 999});
    add("ragged", 16, 64, ragged, 1);
    add("many", 16, 16, Reqs(256, {1, 77, 1}), 1);
    // Decode and prompts: with and without a cached prefix, padding, tiles that end within a token
    // sequence.
    add("mixed", 16, 64,
        {{1, 300, 1}, {1, 0, 2}, {33, 33, 3}, {64, 2000, 4}, {0, 0, 5}, {129, 129, 6}}, 1);
    add("prompts", 16, 32,
        {{300, 300, 1}, {64, 1500, 2}, {0, 0, 3}, {129, 0, 4}, {1, 700, 5}, {2, 2, 6}}, 0);
    add("prompts", 128, 64, {{70, 70, 1}, {5, 300, 2}, {1, 1, 3}}, 0);
    // Upper bounds of lengths that are far above the lengths: see check_cuda_attention.
    add("short", 16, 64, Reqs(40, {1, 3, 1}), 1);
  }
  // The last pages are beyond 2^31 elements.
  AttentionCase huge = {.name = "huge_pool",
                        .shape = latent_shape(16),
                        .reqs = {{1, 300, 1}, {1, 70, 2}, {5, 700, 3}, {100, 333, 4}}};
  huge.num_unused_pages = (int64_t{1} << 31) / (64 * kDim) + 10;
  cases.push_back(huge);
  return cases;
}

CudaAttentionSuite suite() {
  return {.make = cuda::make_flashinfer_attention, .cases = latent_cases()};
}

INSTANTIATE_TEST_SUITE_P(FlashInferLatent, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(suite())), cuda_attention_name);

TEST(FlashInferLatentSupport, RefusesWithEveryReason) {
  const auto backend = cuda::make_flashinfer_attention({.device = kHopper, .num_sms = kNumSms});
  const auto reasons = [&](const AttentionShape& shape, const Device& device = kHopper) {
    return backend->supports(shape, {}, device).reasons;
  };
  for (const int num_heads : {1, 2, 5, 10, 16, 20, 24, 64, 96, 127, 128}) {
    for (const int page_size : {16, 32, 64}) {
      EXPECT_TRUE(reasons(latent_shape(num_heads, page_size)).empty());
      EXPECT_TRUE(reasons(latent_shape(num_heads, page_size, DType::kF8E4M3)).empty());
    }
  }
  EXPECT_EQ(reasons(latent_shape(16),
                    {.kind = DeviceKind::kCuda, .compute_capability = 89, .name = "Ada"})
                .size(),
            1U);
  for (const auto& change : std::vector<void (*)(AttentionShape&)>{
           [](AttentionShape& of) { of.window = 100; }, [](AttentionShape& of) { of.sinks = true; },
           [](AttentionShape& of) { of.softcap = 5.0F; },
           [](AttentionShape& of) { of.num_heads = 129; },
           [](AttentionShape& of) { of.head_dim = 512; },
           [](AttentionShape& of) { of.causal = false; },
           [](AttentionShape& of) { of.kv = DType::kF32; },
           [](AttentionShape& of) { of.out = DType::kF32; }}) {
    AttentionShape shape = latent_shape(16);
    change(shape);
    EXPECT_EQ(reasons(shape).size(), 1U) << reasons(shape).front();
  }
}

TEST(FlashInferLatentPlans, AreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  check_independent_plans(*cuda::make_flashinfer_attention(*device), *device, latent_shape(16));
}

// A batch and its plan, all of it on the host.
struct Planned {
  std::vector<int32_t> query_start = {0};
  std::vector<int32_t> kv_lens;
  fi::LatentGrid grid;
  std::vector<fi::LatentWork> memory;
  fi::LatentArrays arrays;
  int64_t num_works = 0;
};

Planned plan(const AttentionShape& shape, const std::vector<int32_t>& q_lens,
             const std::vector<int32_t>& kv_lens) {
  Planned planned;
  for (const int32_t q_len : q_lens) {
    planned.query_start.push_back(planned.query_start.back() + q_len);
  }
  planned.kv_lens = kv_lens;
  AttentionBatch batch;
  batch.query_start.host = planned.query_start.data();
  batch.kv_len_bound = planned.kv_lens;
  batch.decode = {.num_reqs = static_cast<int>(q_lens.size()),
                  .num_tokens = planned.query_start.back()};
  planned.grid = fi::choose_latent_grid(shape, batch.decode, kNumSms);
  fi::LatentPlanner planner;
  const int64_t max_works = planner.measure(shape, batch, batch.decode, planned.grid);
  const PlanLimits limits = {
      .use = {}, .max_num_reqs = batch.decode.num_reqs, .max_num_tokens = batch.decode.num_tokens};
  EXPECT_LE(max_works, fi::max_latent_works(shape, limits, kNumSms));
  planned.memory.assign(
      ceil_div(fi::latent_array_bytes(kNumSms, max_works), sizeof(fi::LatentWork)), {.req = -77});
  planned.arrays = fi::place_latent_arrays(planned.memory.data(), kNumSms);
  planned.num_works = planner.fill(kNumSms, planned.arrays);
  EXPECT_LE(planned.num_works, max_works);
  return planned;
}

// The tile that a work item belongs to.
using TileKey = std::pair<int32_t, int32_t>;  // request, first row

TileKey key_of(const fi::LatentWork& work) {
  return {work.req, work.row};
}

// The rows of a tile, and the positions that they see.
struct TileBounds {
  int32_t num_rows = 0;
  int32_t kv_end = 0;
  int32_t q_len = 0;  // of the request
  int32_t later_tokens = 0;
};

TileBounds bounds_of(const AttentionShape& shape, const Planned& planned, const TileKey& key) {
  const auto req = static_cast<size_t>(key.first);
  const int32_t q_len = planned.query_start[req + 1] - planned.query_start[req];
  const int32_t num_rows =
      std::min(planned.grid.used_rows(shape.num_heads), q_len * shape.num_heads - key.second);
  const int32_t last_token = (key.second + num_rows - 1) / shape.num_heads;
  return {num_rows, std::max(0, planned.kv_lens[req] - q_len + last_token + 1), q_len,
          q_len - last_token - 1};
}

// Each tile's positions are planned exactly once, and partial rows are distinct.
void expect_complete(const AttentionShape& shape, const Planned& planned) {
  std::map<TileKey, std::vector<fi::LatentWork>> tiles;
  for (int64_t i = 0; i < planned.num_works; ++i) {
    tiles[key_of(planned.arrays.works[i])].push_back(planned.arrays.works[i]);
  }
  size_t num_tiles = 0;
  for (size_t req = 0; req + 1 < planned.query_start.size(); ++req) {
    const int rows = (planned.query_start[req + 1] - planned.query_start[req]) * shape.num_heads;
    num_tiles += static_cast<size_t>(ceil_div(rows, planned.grid.used_rows(shape.num_heads)));
  }
  EXPECT_EQ(tiles.size(), num_tiles);
  std::set<int32_t> partials, cuts;
  std::map<int32_t, int32_t> merged;  // row of out -> first partial row
  for (const auto& [key, works] : tiles) {
    const TileBounds bounds = bounds_of(shape, planned, key);
    EXPECT_EQ(key.second % planned.grid.used_rows(shape.num_heads), 0);
    if (planned.grid.kernel == fi::LatentKernel::kFlashInfer) {
      EXPECT_EQ(bounds.num_rows % shape.num_heads, 0) << "a token is split";
    }
    EXPECT_LE(bounds.num_rows, planned.grid.tile_rows());
    const auto num_parts = static_cast<int32_t>(works.size());
    const int32_t first_row =
        planned.query_start[static_cast<size_t>(key.first)] * shape.num_heads + key.second;
    int32_t next = 0;
    for (size_t part = 0; part < works.size(); ++part) {
      const fi::LatentWork& work = works[part];
      EXPECT_EQ(work.kv_start, next);
      EXPECT_EQ(work.kv_start % planned.grid.tile_positions(), 0);
      EXPECT_TRUE(work.kv_end > work.kv_start || bounds.kv_end == 0);
      next = work.kv_end;
      EXPECT_EQ(work.num_rows, bounds.num_rows);
      EXPECT_EQ(work.q_len, bounds.q_len);
      EXPECT_EQ(work.later_tokens, bounds.later_tokens);
      EXPECT_EQ(work.out_row, first_row);
      EXPECT_EQ(work.partial >= 0, works.size() > 1);
      if (work.partial < 0) continue;
      EXPECT_EQ(work.part, static_cast<int32_t>(part));
      EXPECT_EQ(work.num_parts, num_parts);
      EXPECT_EQ(work.cut, works.front().cut);
      EXPECT_EQ(work.partial, works.front().partial + static_cast<int32_t>(part) * bounds.num_rows);
      for (int32_t row = 0; row < bounds.num_rows; ++row) {
        EXPECT_TRUE(partials.insert(work.partial + row).second);
      }
    }
    EXPECT_EQ(next, bounds.kv_end);
    if (works.size() == 1) continue;
    EXPECT_LT(works.front().cut, kNumSms);
    EXPECT_TRUE(cuts.insert(works.front().cut).second);
    for (int32_t row = 0; row < bounds.num_rows; ++row) {
      merged[first_row + row] = works.front().partial + row;
    }
  }
  if (!partials.empty()) {
    EXPECT_LT(*partials.rbegin(), fi::max_latent_partial_rows(kNumSms));
  }
  const fi::LatentArrays& arrays = planned.arrays;
  EXPECT_EQ(std::count(arrays.arrivals, arrays.arrivals + kNumSms, 0ULL), kNumSms);
  if (planned.grid.kernel == fi::LatentKernel::kDecode) return;
  // The loop of FlashInfer's kernel over a thread block's rows.
  for (int block = 0; block < kNumSms; ++block) {
    for (int32_t row = arrays.merge_row[block]; row < arrays.merge_row_end[block]; ++row) {
      const int32_t first = arrays.merge_partial[block] + row - arrays.merge_row[block];
      ASSERT_TRUE(merged.contains(row)) << row;
      EXPECT_EQ(merged[row], first);
      merged.erase(row);
      for (int32_t at = first; at < arrays.merge_partial_end[block];
           at += arrays.merge_stride[block]) {
        EXPECT_EQ(partials.erase(at), 1U);
      }
    }
  }
  EXPECT_TRUE(merged.empty());
  EXPECT_TRUE(partials.empty());
}

// The positions that FlashInfer's kernel lets a row of a work item attend to, by the arithmetic of
// mla_hopper.cuh, which is unsigned; none if it does not write the row.
struct RowSpan {
  bool is_written = false;
  int32_t begin = 0;
  int32_t end = 0;
};

RowSpan flashinfer_span(const fi::LatentWork& work, const fi::LatentGrid& grid, int32_t seq_len,
                        uint32_t num_heads, int32_t row_of_tile) {
  const fi::LatentView view = fi::view_of(work, seq_len);
  const auto first_row = static_cast<uint32_t>(work.row);
  const auto row = first_row + static_cast<uint32_t>(row_of_tile);
  const uint32_t block_row = first_row + static_cast<uint32_t>(row_of_tile / 64 * 64);
  const auto q_len = static_cast<uint32_t>(view.q_len);
  const auto kv_len = static_cast<uint32_t>(view.kv_len);
  const auto kv_end = static_cast<uint32_t>(view.kv_end);
  const uint32_t end_token = std::min(q_len, ceil_div(block_row + 64, num_heads));
  const uint32_t tile_end = first_row + static_cast<uint32_t>(grid.tile_rows());
  // Whole units are read, and those that end after the first row's positions are masked.
  const uint32_t read_end =
      round_up(std::min(kv_end, kv_len - q_len + tile_end / num_heads), uint32_t{64});
  const uint32_t row_end = std::min(kv_end, kv_len + row / num_heads + 1 - q_len);
  const auto end = static_cast<int32_t>(std::min(read_end, row_end));
  return {row / num_heads < end_token, work.kv_start, std::max(work.kv_start, end)};
}

// Checks that each row of each request is written, with all its positions, by works that do not
// overlap.
void expect_all_positions(const Planned& planned, int num_heads,
                          const std::vector<int32_t>& seq_lens) {
  std::map<int32_t, std::vector<RowSpan>> spans;  // by row of out
  for (int64_t i = 0; i < planned.num_works; ++i) {
    const fi::LatentWork& work = planned.arrays.works[i];
    for (int32_t row = 0; row < planned.grid.tile_rows(); ++row) {
      const RowSpan span =
          flashinfer_span(work, planned.grid, seq_lens[static_cast<size_t>(work.req)],
                          static_cast<uint32_t>(num_heads), row);
      EXPECT_EQ(span.is_written, row < work.num_rows);
      if (span.is_written) spans[work.out_row + row].push_back(span);
    }
  }
  for (size_t req = 0; req < seq_lens.size(); ++req) {
    const int32_t first_row = planned.query_start[req] * num_heads;
    const int32_t num_rows = planned.query_start[req + 1] * num_heads - first_row;
    for (int32_t row = 0; row < num_rows; ++row) {
      int32_t num_seen = 0;
      int32_t last = 0;
      for (const RowSpan& span : spans[first_row + row]) {
        EXPECT_GE(span.begin, last);
        last = span.end;
        num_seen += span.end - span.begin;
      }
      const int32_t later_tokens = (num_rows - row - 1) / num_heads;
      EXPECT_EQ(num_seen, std::max(0, seq_lens[req] - later_tokens))
          << num_heads << " heads, request " << req << ", row " << row;
    }
  }
}

// Also if lengths are below their bounds, and of padding.
TEST(FlashInferLatentPlan, FlashInfersKernelSeesEveryRowsPositions) {
  std::vector<int32_t> q_lens, bounds, shorter;
  for (const int32_t q_len : {9, 1, 40, 33, 130}) {
    for (const int32_t context : {0, 1, 63, 64, 300, 5000}) {
      q_lens.push_back(q_len);
      bounds.push_back(q_len + context);
      shorter.push_back(std::max(q_len, q_len + context - 70));
    }
  }
  for (const int num_heads : {5, 10, 16, 20, 24, 40, 65, 128}) {
    const Planned planned = plan(latent_shape(num_heads), q_lens, bounds);
    ASSERT_EQ(planned.grid.kernel, fi::LatentKernel::kFlashInfer);
    expect_all_positions(planned, num_heads, bounds);
    expect_all_positions(planned, num_heads, shorter);
    expect_all_positions(planned, num_heads, std::vector<int32_t>(bounds.size(), 0));
  }
}

int64_t units_of(const fi::LatentWork& work, int tile_positions) {
  return ceil_div(work.kv_end, tile_positions) - work.kv_start / tile_positions;
}

// The largest number of units of a worker. Workers take all work items in order.
int64_t longest_worker(const Planned& planned) {
  const int32_t* const starts = planned.arrays.worker_start;
  EXPECT_EQ(starts[0], 0);
  EXPECT_EQ(starts[planned.grid.num_workers], planned.num_works);
  int64_t longest = 0;
  for (int worker = 0; worker < planned.grid.num_workers; ++worker) {
    EXPECT_LE(starts[worker], starts[worker + 1]);
    if (starts[worker] < starts[worker + 1]) {
      const fi::LatentWork& first = planned.arrays.works[starts[worker]];
      EXPECT_EQ(planned.arrays.first_works[worker].req, first.req);
      EXPECT_EQ(planned.arrays.first_works[worker].kv_start, first.kv_start);
    }
    int64_t units = 0;
    for (int32_t i = starts[worker]; i < starts[worker + 1]; ++i) {
      units += units_of(planned.arrays.works[i], planned.grid.tile_positions());
    }
    longest = std::max(longest, units);
  }
  return longest;
}

TEST(FlashInferLatentPlan, CoversEveryRowAndPositionOnce) {
  for (const int num_heads : {1, 5, 10, 16, 20, 24, 33, 40, 64, 65, 96, 127, 128}) {
    const AttentionShape shape = latent_shape(num_heads);
    for (const int num_reqs : {1, 2, 7, 66, 131, 132, 133, 256}) {
      for (const int q_len : {1, 5, 40}) {
        SCOPED_TRACE(fmt::format("{} heads, {} requests of {} tokens", num_heads, num_reqs, q_len));
        std::vector<int32_t> q_lens, kv_lens;
        for (int i = 0; i < num_reqs; ++i) {
          q_lens.push_back(q_len + i % 3);
          kv_lens.push_back(i % 5 == 4 ? 0 : q_len + 2 + i * 317 % 5000);
        }
        const Planned planned = plan(shape, q_lens, kv_lens);
        expect_complete(shape, planned);
        longest_worker(planned);
      }
    }
  }
}

int64_t longest_decode(int num_heads, const std::vector<int32_t>& kv_lens) {
  return longest_worker(
      plan(latent_shape(num_heads), std::vector<int32_t>(kv_lens.size(), 1), kv_lens));
}

std::vector<int32_t> ragged_lengths() {
  std::vector<int32_t> lengths;
  for (int i = 1; i <= 200; ++i) lengths.push_back(i * 100);
  return lengths;
}

int64_t total_units(const std::vector<int32_t>& kv_lens, int tile_positions) {
  int64_t total = 0;
  for (const int32_t kv_len : kv_lens) total += ceil_div(kv_len, tile_positions);
  return total;
}

TEST(FlashInferLatentPlan, SharesUnitsOf64Evenly) {
  // One request: at least two units each.
  EXPECT_EQ(longest_decode(64, {4096}), 2);
  EXPECT_EQ(longest_decode(64, {131072}), 16);  // 2048 units on 132 workers
  EXPECT_EQ(longest_decode(64, std::vector<int32_t>(32, 4096)), 16);
  EXPECT_EQ(longest_decode(64, std::vector<int32_t>(64, 4096)), 32);
  EXPECT_LE(longest_decode(64, ragged_lengths()), total_units(ragged_lengths(), 64) / kNumSms + 8);
}

TEST(FlashInferLatentPlan, SharesUnitsOf32Evenly) {
  EXPECT_EQ(longest_decode(16, {128}), 4);  // whole, because a merge takes longer
  EXPECT_EQ(longest_decode(16, {384}), 1);
  EXPECT_EQ(longest_decode(16, {4096}), 2);  // 64 parts
  EXPECT_EQ(longest_decode(16, {8192}), 4);
  EXPECT_EQ(longest_decode(16, {131072}), 32);
  EXPECT_LE(longest_decode(16, std::vector<int32_t>(300, 1150)), 36 * 300 / kNumSms + 4);
  EXPECT_LE(longest_decode(16, ragged_lengths()), total_units(ragged_lengths(), 32) / kNumSms + 4);
}

// Two tiles per request.
TEST(FlashInferLatentPlan, FewRequestsOf20HeadsAreSharedEvenly) {
  EXPECT_EQ(longest_decode(20, {384}), 1);
  EXPECT_EQ(longest_decode(20, {4096}), 2);
  EXPECT_LE(longest_decode(20, std::vector<int32_t>(8, 4096)), 2 * 8 * 128 / kNumSms + 4);
}

TEST(FlashInferLatentPlan, TilesHaveWholeTokens) {
  const auto used_rows = [](int num_heads, int tile_blocks) {
    return fi::LatentGrid{.kernel = fi::LatentKernel::kFlashInfer, .tile_blocks = tile_blocks}
        .used_rows(num_heads);
  };
  EXPECT_EQ(used_rows(16, 1), 64);
  EXPECT_EQ(used_rows(20, 1), 60);
  EXPECT_EQ(used_rows(20, 2), 120);
  EXPECT_EQ(used_rows(5, 1), 60);
  EXPECT_EQ(used_rows(10, 2), 120);
  EXPECT_EQ(used_rows(24, 1), 48);
  EXPECT_EQ(used_rows(40, 1), 40);
  EXPECT_EQ(used_rows(40, 2), 120);
  EXPECT_EQ(used_rows(96, 2), 96);
  EXPECT_EQ(used_rows(128, 2), 128);
  // The decode kernel masks each row by itself.
  EXPECT_EQ((fi::LatentGrid{.kernel = fi::LatentKernel::kDecode}.used_rows(20)), 16);
}

// Equal requests that nearly fill the device are not cut: a cut would cost more.
TEST(FlashInferLatentPlan, LeavesEqualRequestsWhole) {
  for (const int num_heads : {16, 64}) {
    const Planned planned = plan(latent_shape(num_heads), std::vector<int32_t>(128, 1),
                                 std::vector<int32_t>(128, 8192));
    EXPECT_EQ(planned.num_works, 128);
    EXPECT_EQ(longest_worker(planned), 8192 / planned.grid.tile_positions());
  }
}

// A graph's grid is fixed when it is captured, while lengths may change.
TEST(FlashInferLatentPlan, GridDoesNotDependOnLengths) {
  constexpr auto kDecode = fi::LatentKernel::kDecode;
  constexpr auto kFlashInfer = fi::LatentKernel::kFlashInfer;
  for (const auto& [num_heads, q_len, kernel, tile_blocks] : {std::tuple{16, 1, kDecode, 1},
                                                              {1, 16, kDecode, 1},
                                                              {8, 2, kDecode, 1},
                                                              {8, 3, kDecode, 1},
                                                              {16, 2, kDecode, 1},
                                                              {32, 1, kDecode, 1},
                                                              {20, 1, kDecode, 1},
                                                              {5, 3, kDecode, 1},
                                                              {20, 2, kFlashInfer, 1},
                                                              {20, 4, kFlashInfer, 2},
                                                              {40, 1, kFlashInfer, 1},
                                                              {96, 1, kFlashInfer, 2},
                                                              {16, 4, kFlashInfer, 1},
                                                              {16, 5, kFlashInfer, 2},
                                                              {64, 1, kFlashInfer, 1},
                                                              {64, 2, kFlashInfer, 2},
                                                              {128, 1, kFlashInfer, 2}}) {
    for (const int32_t kv_len : {0, 8, 5000}) {
      const Planned planned = plan(latent_shape(num_heads), {q_len, q_len}, {kv_len, kv_len});
      EXPECT_EQ(planned.grid.kernel, kernel);
      EXPECT_EQ(planned.grid.tile_blocks, tile_blocks);
      EXPECT_EQ(planned.grid.num_workers, kNumSms / tile_blocks);
    }
  }
}

// Requests of two tiles take the decode kernel if there are few, or if the cache is FP8.
TEST(FlashInferLatentPlan, ManyRequestsOfTwoTilesTakeFlashInfersKernel) {
  const auto kernel_of = [](int num_reqs, DType kv) {
    const PhaseRange range = {.num_reqs = num_reqs, .num_tokens = num_reqs};
    return fi::choose_latent_grid(latent_shape(20, 64, kv), range, kNumSms).kernel;
  };
  EXPECT_EQ(kernel_of(8, DType::kBF16), fi::LatentKernel::kDecode);
  EXPECT_EQ(kernel_of(9, DType::kBF16), fi::LatentKernel::kFlashInfer);
  EXPECT_EQ(kernel_of(64, DType::kF8E4M3), fi::LatentKernel::kDecode);
  // Requests without tokens lower the average, but not the number of heads.
  const PhaseRange sparse = {.num_reqs = 8, .num_tokens = 1};
  EXPECT_EQ(fi::choose_latent_grid(latent_shape(40), sparse, kNumSms).kernel,
            fi::LatentKernel::kFlashInfer);
}

// A graph is captured for no lengths; then each tile still has a work item, which writes zeros.
TEST(FlashInferLatentPlan, PaddingHasWork) {
  const Planned planned = plan(latent_shape(16), {1, 1, 1}, {0, 0, 0});
  EXPECT_EQ(planned.num_works, 3);
  expect_complete(latent_shape(16), planned);
}

}  // namespace
}  // namespace quire::testing
