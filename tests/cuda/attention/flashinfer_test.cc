#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "base/numbers.h"
#include "cuda/attention/backends.h"
#include "cuda/attention/flashinfer/kernel.h"
#include "cuda/attention/flashinfer/plan.h"
#include "cuda/attention/gather/gather.h"
#include "cuda_attention_cases.h"

namespace quire::testing {
namespace {

namespace fi = cuda::flashinfer_backend;

constexpr int kNumSms = 132;

const Device kHopper = {
    .kind = DeviceKind::kCuda, .index = 0, .compute_capability = 90, .name = "Hopper"};
const Device kAda = {
    .kind = DeviceKind::kCuda, .index = 0, .compute_capability = 89, .name = "Ada"};

fi::DeviceLimits limits_of(const AttentionShape& shape, const Device& device = kAda) {
  return fi::device_limits(shape, {.device = device, .num_sms = kNumSms});
}

// The limits of a Hopper GPU's prefill plan.
fi::DeviceLimits gathering_limits(const AttentionShape& shape, int max_num_reqs, int max_num_tokens,
                                  int max_kv_len) {
  fi::DeviceLimits limits = limits_of(shape, kHopper);
  limits.scratch_tokens = fi::scratch_tokens(shape,
                                             {.use = {.phase = Phase::kPrefill},
                                              .max_num_reqs = max_num_reqs,
                                              .max_num_tokens = max_num_tokens,
                                              .max_kv_len = max_kv_len},
                                             limits);
  return limits;
}

// Verification steps that are split, with every feature; and more requests than the GPU runs at
// once.
std::vector<AttentionCase> own_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    const auto add = [&](std::string name, const AttentionShape& shape, auto reqs, int q_len) {
      cases.push_back({.name = fmt::format("{}_{}", name, dtype_name(kv)),
                       .shape = shape,
                       .reqs = std::move(reqs),
                       .max_decode_q_len = q_len,
                       .k_scale = 0.02F,
                       .v_scale = 0.01F});
    };
    using Reqs = std::vector<AttentionRequest>;
    for (const int head_dim : {64, 128, 256}) {
      for (const int q_len : {2, 4, 8}) {
        AttentionShape shape = make_attention_shape(16, 4, head_dim, 16, kv);
        shape.window = 200;
        shape.softcap = 5.0F;
        shape.sinks = true;
        add(fmt::format("verify_{}_window_softcap_sinks_head_dim_{}", q_len, head_dim), shape,
            Reqs{{q_len, 1900, 1}, {q_len, 100, 2}, {q_len, 0, 3}}, q_len);
      }
      // FA3, if the GPU has it: several rounds of thread blocks, tiles of very different lengths.
      AttentionShape shape = make_attention_shape(16, 2, head_dim, 16, kv);
      const Reqs prompts = {{700, 700, 1}, {64, 2000, 2}, {0, 0, 3}, {129, 0, 4},
                            {1, 1500, 5},  {383, 400, 6}, {2, 2, 7}};
      add(fmt::format("prompts_head_dim_{}", head_dim), shape, prompts, 0);
      shape.sinks = true;
      add(fmt::format("prompts_sinks_head_dim_{}", head_dim), shape, prompts, 0);
    }
    add("many", make_attention_shape(8, 4, 128, 64, kv), Reqs(200, {1, 77}), 1);
  }
  return cases;
}

// Batches that a Hopper GPU gathers. Contexts end around a page's end and a tile's, and before
// their upper bounds; some are padding. In most cases they need more than one group.
std::vector<AttentionCase> gathered_cases() {
  std::vector<AttentionCase> cases;
  const auto add = [&](std::string_view name, AttentionShape shape,
                       std::vector<AttentionRequest> reqs, int max_decode_q_len = 0) {
    cases.push_back({.name = fmt::format("{}_dim{}_page{}_{}", name, shape.head_dim,
                                         shape.page_size, dtype_name(shape.kv)),
                     .shape = shape,
                     .reqs = std::move(reqs),
                     .max_decode_q_len = max_decode_q_len,
                     .k_scale = 0.02F,
                     .v_scale = 0.01F});
  };
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    for (const int head_dim : {64, 128}) {
      for (const int page : {16, 64}) {
        add("prefixes", make_attention_shape(64, 2, head_dim, page, kv),
            {{300, 300, 1},
             {301, 302, 2},
             {310, 309 + page, 3},
             {256, 256 + page, 4},
             {311, 312 + page, 5},
             {130, 0, 6},
             {384, 384, 7},
             {0, 0, 8},
             {320, 380, 9}});
        cases.back().bound_excess = 20;
      }
      AttentionShape shape = make_attention_shape(64, 2, head_dim, 16, kv);
      shape.sinks = true;
      add("sinks", shape, {{300, 300, 1}, {257, 300, 2}, {0, 0, 3}, {400, 450, 4}});
      shape = make_attention_shape(32, 1, head_dim, 16, kv);
      add("groups", shape,
          {{260, 1500, 1}, {1, 700, 2}, {280, 1510, 3}, {270, 400, 4}, {200, 1536, 5}});
      add("behind_decode", shape, {{1, 500, 1}, {1, 0, 2}, {400, 400, 3}, {300, 421, 4}}, 1);
    }
    add("long", make_attention_shape(32, 1, 128, 16, kv), {{256, 8448, 1}, {129, 129, 2}});
  }
  return cases;
}

// Needs no GPU: FlashInfer's offsets into the queries have 32 bits.
TEST(FlashInferPlans, RefuseMoreQueriesThanOffsetsReach) {
  const auto backend = cuda::make_flashinfer_attention({.device = kHopper, .num_sms = kNumSms});
  AttentionShape shape = make_attention_shape(64, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  const auto make_plan = [&](int max_num_tokens) {
    return backend
        ->make_plan(shape, {.use = {.phase = Phase::kPrefill},
                            .max_num_reqs = 8,
                            .max_num_tokens = max_num_tokens,
                            .max_kv_len = 8192})
        .status();
  };
  const Status refused = make_plan(524288);
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented) << refused.message();
  EXPECT_NE(refused.message().find("`max_num_batched_tokens`"), std::string::npos);
  EXPECT_NE(refused.message().find("4294967296"), std::string::npos);
  // One token less passes the check. The plan then allocates memory, which fails without a GPU.
  const Status taken = make_plan(524287);
  EXPECT_EQ(taken.message().find("`max_num_batched_tokens`"), std::string::npos) << taken.message();
}

CudaAttentionSuite suite() {
  return {.make = cuda::make_flashinfer_attention};
}

CudaAttentionSuite own_suite() {
  CudaAttentionSuite own = suite();
  own.cases = own_cases();
  return own;
}

INSTANTIATE_TEST_SUITE_P(FlashInfer, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(FlashInferModels, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_model_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(FlashInferFeatures, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_feature_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(FlashInferOwn, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(own_suite())),
                         cuda_attention_name);

CudaAttentionSuite gathered_suite() {
  CudaAttentionSuite gathered = suite();
  gathered.cases = gathered_cases();
  return gathered;
}

INSTANTIATE_TEST_SUITE_P(FlashInferGathered, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(gathered_suite())),
                         cuda_attention_name);

struct PlannedTile {
  int32_t req, rows, chunk;
  auto operator<=>(const PlannedTile&) const = default;
};

// A planned batch, all of it on the host.
struct Planned {
  fi::PhaseShape phase;
  std::vector<int32_t> words;
  fi::PlanArrays arrays;
  std::vector<fi::RequestGroup> groups;
};

Planned plan(const AttentionShape& shape, const std::vector<int32_t>& q_lens,
             const std::vector<int32_t>& kv_lens, fi::DeviceLimits limits) {
  std::vector<int32_t> query_start = {0};
  for (const int32_t q_len : q_lens) query_start.push_back(query_start.back() + q_len);
  AttentionBatch batch;
  batch.query_start.host = query_start.data();
  batch.kv_len_bound = kv_lens;
  batch.max_pages = 100;
  batch.decode = {.num_reqs = static_cast<int>(q_lens.size()),
                  .num_tokens = query_start.back(),
                  .max_kv_len = *std::max_element(kv_lens.begin(), kv_lens.end())};
  Planned planned;
  planned.phase = fi::choose_shape(shape, batch, batch.decode, limits);
  planned.words.resize(
      static_cast<size_t>(fi::plan_words(planned.phase.num_tiles, batch.decode.num_reqs)));
  planned.arrays =
      fi::place_arrays(planned.words.data(), planned.phase.num_tiles, batch.decode.num_reqs);
  fi::Planner planner;
  planner.fill(shape, batch, batch.decode, planned.phase, limits, planned.arrays);
  planned.groups.assign(planner.groups().begin(), planner.groups().end());
  return planned;
}

// Each pair of a tile of a request's rows and a chunk of its positions is planned exactly once.
void expect_complete(const AttentionShape& shape, const std::vector<int32_t>& q_lens,
                     const std::vector<int32_t>& kv_lens, const Planned& planned) {
  std::map<PlannedTile, int> seen;
  for (int i = 0; i < planned.phase.num_tiles; ++i) {
    EXPECT_TRUE(planned.phase.split || planned.arrays.tile_valid[i]);
    if (!planned.arrays.tile_valid[i]) continue;
    ++seen[{planned.arrays.tile_req[i], planned.arrays.tile_rows[i], planned.arrays.tile_chunk[i]}];
  }
  int32_t next_row = 0;
  size_t num_expected = 0;
  for (int req = 0; req < static_cast<int>(q_lens.size()); ++req) {
    const auto i = static_cast<size_t>(req);
    const int rows = q_lens[i] * shape.num_heads / shape.num_kv_heads;
    const int num_tiles = ceil_div(rows, planned.phase.tile_rows);
    const auto num_chunks = static_cast<int>(fi::num_chunks(
        kv_lens[i], shape.window, planned.phase.tile_rows, *planned.arrays.chunk_tokens));
    for (int tile = 0; tile < num_tiles; ++tile) {
      for (int chunk = 0; chunk < num_chunks; ++chunk) {
        EXPECT_EQ((seen[{req, tile, chunk}]), 1) << req << " " << tile << " " << chunk;
        ++num_expected;
      }
    }
    EXPECT_EQ(planned.arrays.partial_start[req], next_row);
    EXPECT_EQ(planned.arrays.page_start[req], req * 100);
    next_row += q_lens[i] * num_chunks;
  }
  EXPECT_EQ(seen.size(), num_expected);
}

TEST(FlashInferPlan, CoversEveryRowAndPositionOnce) {
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  const fi::DeviceLimits limits = limits_of(shape);
  for (const int window : {0, 300}) {
    shape.window = window;
    for (const int num_reqs : {1, 2, 7, 31, 66, 67, 200}) {
      for (const int q_len : {1, 5, 40}) {
        SCOPED_TRACE(fmt::format("{} requests of {} tokens, window {}", num_reqs, q_len, window));
        std::vector<int32_t> q_lens, kv_lens;
        for (int i = 0; i < num_reqs; ++i) {
          q_lens.push_back(q_len + i % 3);
          kv_lens.push_back(i % 5 == 4 ? 0 : q_len + 2 + i * 317 % 5000);
        }
        expect_complete(shape, q_lens, kv_lens, plan(shape, q_lens, kv_lens, limits));
      }
    }
  }
}

// The number of a graph's thread blocks is fixed when it is captured, while lengths may change.
TEST(FlashInferPlan, ShapeDoesNotDependOnLengths) {
  const AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  const fi::DeviceLimits limits = limits_of(shape);
  for (const int num_reqs : {1, 8, 9, 66, 67, 256}) {
    const std::vector<int32_t> query_start = [&] {
      std::vector<int32_t> starts;
      for (int i = 0; i <= num_reqs; ++i) starts.push_back(i);
      return starts;
    }();
    AttentionBatch batch;
    batch.query_start.host = query_start.data();
    batch.decode = {.num_reqs = num_reqs, .num_tokens = num_reqs, .max_kv_len = 8192};
    const fi::PhaseShape phase = fi::choose_shape(shape, batch, batch.decode, limits);
    EXPECT_EQ(phase.tile_rows, 16);
    EXPECT_EQ(limits.num_resident_blocks, 33);
    EXPECT_EQ(phase.split, num_reqs <= 66);
    EXPECT_EQ(phase.num_tiles, num_reqs <= 8 ? 33 : num_reqs <= 66 ? 132 : num_reqs);
  }
}

TEST(FlashInferPlan, SplitsIntoAsManyRoundsAsPay) {
  const AttentionShape shape = make_attention_shape(64, 8, 128, 16, DType::kBF16);
  const fi::DeviceLimits limits = limits_of(shape);
  const auto units = [&](const std::vector<int32_t>& kv_lens) {
    const Planned planned = plan(shape, std::vector<int32_t>(kv_lens.size(), 1), kv_lens, limits);
    return *planned.arrays.chunk_tokens / fi::kSplitUnit;
  };
  EXPECT_EQ(units({131072}), 32);  // 1024 units on 33 resident slots
  EXPECT_EQ(units({8192}), 2);
  EXPECT_EQ(units({1024}), 1);
  // Even lengths need no chunks if the requests fill the GPU; ragged lengths do.
  EXPECT_EQ(units(std::vector<int32_t>(64, 131072)), 1024);
  std::vector<int32_t> ragged;
  for (int i = 1; i <= 64; ++i) ragged.push_back(i * 2048);
  EXPECT_LT(units(ragged), 400);
}

// FA3's tiles are tokens of one head, for any group size, ordered by the positions that they see.
TEST(FlashInferPlan, GivesLongPromptsToFa3) {
  const AttentionShape shape = [] {
    AttentionShape bf16 = make_attention_shape(32, 8, 128, 16, DType::kBF16);
    bf16.q = DType::kBF16;
    return bf16;
  }();
  const std::vector<int32_t> q_lens = {300, 0, 64, 129};
  const std::vector<int32_t> kv_lens = {300, 0, 5000, 200};
  const Planned planned = plan(shape, q_lens, kv_lens, limits_of(shape, kHopper));
  EXPECT_EQ(planned.phase.kernel, fi::KernelKind::kFa3);
  EXPECT_FALSE(planned.phase.split);
  std::vector<std::pair<int32_t, int32_t>> tiles;
  for (int i = 0; i < planned.phase.num_tiles; ++i) {
    tiles.emplace_back(planned.arrays.tile_req[i], planned.arrays.tile_rows[i]);
  }
  const std::vector<std::pair<int32_t, int32_t>> expected = {{2, 0}, {0, 2}, {0, 1},
                                                             {3, 1}, {3, 0}, {0, 0}};
  EXPECT_EQ(tiles, expected);
}

TEST(FlashInferPlan, UsesFa3OnlyForSupportedShapes) {
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = DType::kBF16;
  const auto kernel_of = [](const AttentionShape& of, const Device& device, int32_t q_len) {
    return plan(of, {q_len, q_len}, {q_len + 100, q_len}, limits_of(of, device)).phase.kernel;
  };
  EXPECT_EQ(kernel_of(shape, kHopper, 500), fi::KernelKind::kFa3);
  EXPECT_EQ(kernel_of(shape, kHopper, 8), fi::KernelKind::kFa2);
  EXPECT_EQ(kernel_of(shape, kAda, 500), fi::KernelKind::kFa2);
  for (const auto& change : std::vector<void (*)(AttentionShape&)>{
           [](AttentionShape& of) { of.window = 100; },
           [](AttentionShape& of) { of.softcap = 5.0F; },
           [](AttentionShape& of) { of.kv = DType::kF8E4M3; },
           [](AttentionShape& of) { of.head_dim = of.head_dim_v = 256; }}) {
    AttentionShape other = shape;
    change(other);
    EXPECT_EQ(kernel_of(other, kHopper, 500), fi::KernelKind::kFa2);
  }
}

AttentionShape hopper_shape(int num_heads, int num_kv_heads, DType kv) {
  AttentionShape shape = make_attention_shape(num_heads, num_kv_heads, 128, 16, kv);
  shape.q = shape.out = DType::kBF16;
  return shape;
}

// Rows per gathered position decide: query tokens × heads of a KV head that see it.
TEST(FlashInferGather, PaysForManyQueriesPerPosition) {
  const auto pays = [](int64_t group, int64_t q_len, int64_t kv_len, bool is_fp8) {
    return fi::gather_pays(
        {.num_positions = kv_len, .num_pairs = group * (q_len * kv_len - q_len * (q_len - 1) / 2)},
        is_fp8);
  };
  EXPECT_TRUE(pays(8, 8192, 8192, false));
  EXPECT_TRUE(pays(8, 1024, 1024, false));
  EXPECT_FALSE(pays(8, 1000, 1000, false));
  EXPECT_FALSE(pays(8, 16, 8192, false));
  EXPECT_TRUE(pays(8, 520, 100000, false));  // hardly any of the prefix is masked
  EXPECT_FALSE(pays(1, 4096, 4096, false));
  EXPECT_TRUE(pays(8, 64, 64, true));
  EXPECT_FALSE(pays(8, 16, 8192, true));
  static_assert(!fi::gather_pays({}, true));
}

TEST(FlashInferGather, BoundsTheScratch) {
  const AttentionShape shape = hopper_shape(64, 8, DType::kBF16);
  const auto tokens = [&](int max_num_reqs, int max_num_tokens, int max_kv_len) {
    return gathering_limits(shape, max_num_reqs, max_num_tokens, max_kv_len).scratch_tokens;
  };
  EXPECT_EQ(tokens(256, 2048, 8192), 8192);
  EXPECT_EQ(tokens(16, 16384, 1024), 16384);  // a step of whole prompts
  EXPECT_EQ(tokens(1, 8192, 300), 384);       // never more than all contexts
  EXPECT_EQ(tokens(256, 8192, 131072), 65536);
  EXPECT_EQ(65536 * cuda::gathered_token_bytes(shape), cuda::kMaxScratchBytes);
  for (const int num_kv_heads : {1, 3, 40}) {
    const AttentionShape other = hopper_shape(num_kv_heads, num_kv_heads, DType::kF8E4M3);
    const fi::DeviceLimits limits = gathering_limits(other, 256, 8192, 1 << 20);
    EXPECT_EQ(limits.scratch_tokens % fi::kFa3TilePositions, 0);
    EXPECT_GT(limits.scratch_tokens, 0);
    EXPECT_LE(limits.scratch_tokens * cuda::gathered_token_bytes(other), cuda::kMaxScratchBytes);
  }
  const PlanLimits decode = {.use = {.phase = Phase::kDecode},
                             .max_num_reqs = 256,
                             .max_num_tokens = 256,
                             .max_kv_len = 8192};
  EXPECT_EQ(fi::scratch_tokens(shape, decode, limits_of(shape, kHopper)), 0);
  const PlanLimits prefill = {.use = {.phase = Phase::kPrefill},
                              .max_num_reqs = 256,
                              .max_num_tokens = 2048,
                              .max_kv_len = 8192};
  EXPECT_EQ(fi::scratch_tokens(shape, prefill, limits_of(shape, kAda)), 0);
  AttentionShape windowed = shape;
  windowed.window = 100;
  EXPECT_EQ(fi::scratch_tokens(windowed, prefill, limits_of(windowed, kHopper)), 0);
}

// Each group has the tiles of its own requests, longest first, and each tile is in one group.
TEST(FlashInferGather, PlansEveryTileInItsGroup) {
  const AttentionShape shape = hopper_shape(64, 2, DType::kBF16);
  const std::vector<int32_t> q_lens = {300, 0, 1000, 129, 700};
  const std::vector<int32_t> kv_lens = {310, 0, 1500, 129, 1200};
  const Planned planned = plan(shape, q_lens, kv_lens, gathering_limits(shape, 5, 1500, 1536));
  EXPECT_EQ(planned.phase.kernel, fi::KernelKind::kFa3Gathered);
  EXPECT_FALSE(planned.phase.split);
  const std::vector<fi::RequestGroup> expected = {
      {{.first_req = 0, .num_reqs = 2, .num_tokens = 384}, 0, 3},  // first_tile, num_tiles
      {{.first_req = 2, .num_reqs = 1, .num_tokens = 1536}, 3, 8},
      {{.first_req = 3, .num_reqs = 2, .num_tokens = 1536}, 11, 8}};
  EXPECT_EQ(planned.groups, expected);
  EXPECT_EQ(planned.arrays.tile_req[11], 4);
  int next_tile = 0;
  for (const fi::RequestGroup& group : planned.groups) {
    EXPECT_EQ(group.first_tile, next_tile);
    next_tile += group.num_tiles;
    std::map<std::pair<int32_t, int32_t>, int> seen;
    for (int i = group.first_tile; i < next_tile; ++i) {
      ++seen[{planned.arrays.tile_req[i], planned.arrays.tile_rows[i]}];
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(group.num_tiles));
    for (const auto& [tile, count] : seen) {
      EXPECT_EQ(count, 1);
      EXPECT_GE(tile.first, group.first_req);
      EXPECT_LT(tile.first, group.first_req + group.num_reqs);
      EXPECT_LT(tile.second * fi::kFa3TileTokens, q_lens[static_cast<size_t>(tile.first)]);
    }
  }
  EXPECT_EQ(next_tile, planned.phase.num_tiles);
}

// A phase with a context that the scratch cannot hold is attended as without gathering.
TEST(FlashInferGather, LeavesLongerContextsToThePagedKernels) {
  const auto kernel_of = [](DType kv, const std::vector<int32_t>& kv_lens) {
    const AttentionShape shape = hopper_shape(64, 8, kv);
    const std::vector<int32_t> q_lens(kv_lens.size(), 2048);
    return plan(shape, q_lens, kv_lens, gathering_limits(shape, 8, 8192, 131072)).phase.kernel;
  };
  for (const DType kv : {DType::kBF16, DType::kF8E4M3}) {
    EXPECT_EQ(kernel_of(kv, {65536}), fi::KernelKind::kFa3Gathered);
    EXPECT_EQ(kernel_of(kv, {65536, 65536, 4096}), fi::KernelKind::kFa3Gathered);
  }
  EXPECT_EQ(kernel_of(DType::kBF16, {65537, 4096}), fi::KernelKind::kFa3);
  EXPECT_EQ(kernel_of(DType::kF8E4M3, {65537, 4096}), fi::KernelKind::kFa2);
}

// With an FP8 cache, which FA3 cannot read otherwise, gathering pays for shorter prompts.
TEST(FlashInferGather, ServesFp8CachesOfShorterPrompts) {
  const auto kernel_of = [](DType kv, int32_t q_len) {
    const AttentionShape shape = hopper_shape(32, 8, kv);
    return plan(shape, {q_len}, {q_len}, gathering_limits(shape, 8, 8192, 8192)).phase.kernel;
  };
  EXPECT_EQ(kernel_of(DType::kF8E4M3, 64), fi::KernelKind::kFa2);
  EXPECT_EQ(kernel_of(DType::kF8E4M3, 512), fi::KernelKind::kFa3Gathered);
  EXPECT_EQ(kernel_of(DType::kBF16, 512), fi::KernelKind::kFa3);
  EXPECT_EQ(kernel_of(DType::kBF16, 4096), fi::KernelKind::kFa3Gathered);
}

// Otherwise the GPU tests of gathered cases would test another kernel.
TEST(FlashInferGather, GathersTheCasesOfItsTests) {
  for (const AttentionCase& spec : gathered_cases()) {
    SCOPED_TRACE(spec.name);
    AttentionShape shape = spec.shape;
    shape.q = shape.out = shape.kv == DType::kF16 ? DType::kF16 : DType::kBF16;
    std::vector<int32_t> q_lens, kv_lens;
    for (const AttentionRequest& req : spec.reqs) {
      if (req.q_len > 0 && req.q_len <= spec.max_decode_q_len) continue;
      q_lens.push_back(req.q_len);
      kv_lens.push_back(req.kv_len == 0 ? 0 : req.kv_len + spec.bound_excess);
    }
    const int num_tokens = std::accumulate(q_lens.begin(), q_lens.end(), 0);
    const int longest = *std::max_element(kv_lens.begin(), kv_lens.end());
    const Planned planned =
        plan(shape, q_lens, kv_lens,
             gathering_limits(shape, static_cast<int>(q_lens.size()), num_tokens, longest));
    EXPECT_EQ(planned.phase.kernel, fi::KernelKind::kFa3Gathered);
    EXPECT_GE(planned.groups.size(), spec.name.starts_with("groups") ? 3U : 1U);
  }
}

TEST(FlashInferPlan, StartsWithTheLongest) {
  const AttentionShape shape = make_attention_shape(8, 8, 128, 16, DType::kBF16);
  const Planned planned = plan(shape, {1, 1, 1}, {300, 9000, 2000}, {.num_resident_blocks = 1});
  EXPECT_FALSE(planned.phase.split);
  EXPECT_EQ(planned.arrays.tile_req[0], 1);
  EXPECT_EQ(planned.arrays.tile_req[1], 2);
  EXPECT_EQ(planned.arrays.tile_req[2], 0);
}

TEST(FlashInferPlan, StaysWithinItsBounds) {
  for (const auto& [num_heads, num_kv_heads, head_dim] :
       {std::tuple{64, 8, 128}, {8, 8, 64}, {40, 1, 256}}) {
    const AttentionShape shape =
        make_attention_shape(num_heads, num_kv_heads, head_dim, 16, DType::kBF16);
    const fi::DeviceLimits limits = limits_of(shape);
    for (const int num_reqs : {1, 5, 64}) {
      for (const int q_len : {1, 2, 9, 33}) {
        const std::vector<int32_t> q_lens(static_cast<size_t>(num_reqs), q_len);
        const std::vector<int32_t> kv_lens(static_cast<size_t>(num_reqs), 20000);
        const Planned planned = plan(shape, q_lens, kv_lens, limits);
        EXPECT_LE(planned.phase.num_tiles, fi::max_tiles(shape,
                                                         {.use = {},
                                                          .max_num_reqs = num_reqs,
                                                          .max_num_tokens = num_reqs * q_len,
                                                          .max_kv_len = 20000},
                                                         limits));
        if (!planned.phase.split) continue;
        const auto num_chunks =
            fi::num_chunks(20000, 0, planned.phase.tile_rows, *planned.arrays.chunk_tokens);
        EXPECT_LE(planned.arrays.partial_start[num_reqs - 1] + q_len * num_chunks,
                  fi::max_partial_rows(shape, limits));
      }
    }
  }
}

TEST(FlashInferSupport, RefusesWithEveryReason) {
  const auto backend = cuda::make_flashinfer_attention({.device = kHopper});
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  EXPECT_TRUE(backend->supports(shape, {}, kHopper).ok());
  EXPECT_TRUE(backend->supports(shape, {.phase = Phase::kPrefill}, kHopper).ok());
  shape.kv = DType::kF8E4M3;
  EXPECT_TRUE(backend->supports(shape, {}, kHopper).ok());
  EXPECT_TRUE(backend->supports(shape, {.phase = Phase::kPrefill}, kHopper).ok());
  shape.head_dim = shape.head_dim_v = 256;
  EXPECT_EQ(backend->supports(shape, {}, kHopper).reasons.size(), 1U);
  shape.q = shape.out = DType::kF16;
  shape.causal = false;
  EXPECT_EQ(backend->supports(shape, {}, kHopper).reasons.size(), 3U);
  shape = make_attention_shape(32, 8, 128, 16, DType::kF32);
  EXPECT_FALSE(backend->supports(shape, {.phase = Phase::kPrefill}, kHopper).ok());
}

TEST(FlashInferPlans, RefuseMorePositionsThan31BitsHold) {
  const auto backend = cuda::make_flashinfer_attention({.device = kHopper});
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  const PlanLimits limits = {
      .use = {}, .max_num_reqs = 1 << 14, .max_num_tokens = 1 << 14, .max_kv_len = 1 << 17};
  EXPECT_EQ(backend->make_plan(shape, limits).status().code(), StatusCode::kUnimplemented);
}

TEST(FlashInferPlans, AreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  check_independent_plans(*cuda::make_flashinfer_attention(*device), *device, shape);
}

// A plan uses memory that make_plan() allocated, and steps do not grow it.
TEST(FlashInferPlans, RefuseLargerBatchesThanTheyWereMadeFor) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  AttentionShape shape = make_attention_shape(8, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  const auto plan =
      cuda::make_flashinfer_attention(*device)->make_plan(shape, {.use = {.phase = Phase::kPrefill},
                                                                  .max_num_reqs = 1,
                                                                  .max_num_tokens = 64,
                                                                  .max_kv_len = 1 << 20});
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  const std::vector<int32_t> query_start = {0, 1 << 17};
  const std::vector<int32_t> kv_lens = {1 << 17};
  AttentionBatch batch;
  batch.query_start.host = query_start.data();
  batch.kv_len_bound = kv_lens;
  batch.prefill = {.num_reqs = 1, .num_tokens = 1 << 17, .max_kv_len = 1 << 17};
  Stream stream;
  EXPECT_DEATH((void)(*plan)->update(batch, stream), "larger than the plan was made for");
}

}  // namespace
}  // namespace quire::testing
