#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <tuple>

#include "cuda/attention/backends.h"
#include "cuda/attention/native/kernels.h"
#include "cuda/attention/native/work.h"
#include "cuda_attention_cases.h"
#include "cuda_attention_problem.h"

namespace quire::testing {
namespace {

using cuda::native::KernelKind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr cuda::native::GpuTraits kGpu = {.num_sms = 132, .has_clusters = true, .has_wgmma = true};

AttentionShape shape_of(int num_heads, int num_kv_heads, int head_dim, DType q, DType kv) {
  AttentionShape shape = make_attention_shape(num_heads, num_kv_heads, head_dim, 16, kv);
  shape.q = shape.out = q;
  return shape;
}

// At most 64 packed rows per request and KV head: contexts around a page's end, around the ends of
// a warp's steps and of splits, and long enough to be split.
void add_few_rows(DType kv, std::vector<AttentionCase>& cases) {
  const auto add = [&](std::string name, const AttentionShape& shape, int q_len) {
    AttentionCase spec{.name = std::move(name), .shape = shape};
    spec.name += "_" + std::string(dtype_name(kv));
    spec.max_decode_q_len = q_len;
    spec.k_scale = 0.02F;
    spec.v_scale = 0.01F;
    const int page = shape.page_size;
    for (const int kv_len :
         {0, q_len, page - 1, page, page + 1, 127, 128, 129, 511, 513, 700, 2600}) {
      spec.reqs.push_back({q_len, kv_len == 0 ? 0 : std::max(q_len, kv_len),
                           cases.size() + static_cast<uint64_t>(kv_len)});
    }
    cases.push_back(std::move(spec));
  };
  constexpr int kPages[] = {16, 32, 64};
  constexpr struct {
    int group, q_len;
    bool every_dim;
  } kRowCounts[] = {{8, 1, true},  {4, 2, true},  {1, 8, true},  {4, 1, false},
                    {3, 2, false}, {2, 4, false}, {2, 1, false}, {1, 1, false},
                    {1, 3, false}, {5, 1, false}, {7, 1, false}, {3, 3, true},
                    {8, 5, true},  {8, 8, false}, {7, 7, false}, {64, 1, false}};
  for (const auto& [group, q_len, every_dim] : kRowCounts) {
    for (const int dim : {16, 64, 80, 128, 192, 256, 272, 320, 512}) {
      if (!every_dim && dim != 128 && dim != 512) continue;
      if (dim > 256 && group * q_len > 9) continue;  // no tensor cores
      const int page = kPages[cases.size() % 3];
      const int num_kv_heads = group * q_len > 16 ? 8 : 2;  // kRows64 needs many thread blocks
      add(fmt::format("few_rows_{}x{}_dim{}_page{}", group, q_len, dim, page),
          make_attention_shape(num_kv_heads * group, num_kv_heads, dim, page, kv), q_len);
    }
  }
  for (const int q_len : {1, 2}) {
    AttentionShape shape = make_attention_shape(8, 2, 128, 16, kv);
    shape.window = 600;
    shape.sinks = true;
    add(fmt::format("few_rows_window_q{}", q_len), shape, q_len);
    shape = make_attention_shape(8, 2, 96, 32, kv);
    shape.head_dim_v = 160;
    shape.softcap = 3.0F;
    add(fmt::format("few_rows_wider_values_q{}", q_len), shape, q_len);
    for (const int dim : {320, 512}) {
      shape = make_attention_shape(8, 2, dim, 16, kv);
      shape.window = 600;
      shape.sinks = true;
      shape.softcap = 3.0F;
      add(fmt::format("few_rows_window_dim{}_q{}", dim, q_len), shape, q_len);
      shape.chunked = true;
      add(fmt::format("few_rows_chunks_dim{}_q{}", dim, q_len), shape, q_len);
    }
    shape = make_attention_shape(8, 2, 512, 64, kv);
    shape.head_dim_v = 320;
    add(fmt::format("few_rows_narrower_values_q{}", q_len), shape, q_len);
    shape = make_attention_shape(8, 2, 128, 32, kv);
    shape.head_dim_v = 512;
    add(fmt::format("few_rows_wide_values_q{}", q_len), shape, q_len);
  }
}

// Heads of more than 256 columns: prompts around the ends of a tile of rows, of two tiles that
// share positions, of pages and of kernels' steps, with and without a cached prefix; drafts; and
// each option.
void add_wide_heads(DType kv, std::vector<AttentionCase>& cases) {
  using Reqs = std::vector<AttentionRequest>;
  const auto add = [&](std::string name, const AttentionShape& shape, const Reqs& reqs, int q_len) {
    cases.push_back({.name = fmt::format("wide_{}_{}", name, dtype_name(kv)),
                     .shape = shape,
                     .reqs = reqs,
                     .max_decode_q_len = q_len,
                     .k_scale = 0.02F,
                     .v_scale = 0.01F});
  };
  const Reqs prompts = {{8, 8, 1},   {9, 9, 2},     {16, 16, 3},   {17, 140, 4},  {0, 0, 5},
                        {1, 777, 6}, {40, 1031, 7}, {130, 130, 8}, {129, 257, 9}, {33, 0, 10}};
  const Reqs drafts = {{5, 2100, 1}, {5, 5, 2}, {5, 0, 3}, {5, 517, 4}, {5, 128, 5}, {5, 16, 6}};
  constexpr std::array<std::array<int, 2>, 6> kDims = {
      {{512, 512}, {264, 264}, {320, 320}, {512, 272}, {64, 512}, {448, 16}}};
  for (size_t i = 0; i < kDims.size(); ++i) {
    const auto [dim, dim_v] = kDims[i];
    if (kv == DType::kF8E4M3 && dim % 16 != 0) continue;
    AttentionShape shape = make_attention_shape(16, 2, dim, 16 << i % 3, kv);
    shape.head_dim_v = dim_v;
    const std::string dims = fmt::format("{}x{}", dim, dim_v);
    add("prefill_" + dims, shape, prompts, 0);
    add("drafts_" + dims, shape, drafts, 5);
    add("mixed_" + dims, shape, {{1, 700, 1}, {1, 0, 2}, {1, 64, 3}, {70, 260, 4}, {11, 403, 5}},
        1);
  }
  for (const int group : {1, 3, 16, 80}) {
    const AttentionShape shape = make_attention_shape(group, 1, 512, 32, kv);
    add(fmt::format("prefill_group{}", group), shape, {{150, 300, 1}, {3, 3, 2}, {1, 90, 3}}, 0);
    add(fmt::format("drafts_group{}", group), shape, {{3, 300, 1}, {3, 3, 2}, {3, 90, 3}}, 3);
  }
  const auto add_option = [&](const std::string& name, const AttentionShape& shape) {
    add("prefill_" + name, shape, prompts, 0);
    add("drafts_" + name, shape, drafts, 5);
  };
  const AttentionShape plain = make_attention_shape(16, 2, 512, 16, kv);
  for (const int window : {1, 37, 128, 600}) {
    AttentionShape shape = plain;
    shape.window = window;
    add_option(fmt::format("window_{}", window), shape);
    shape.chunked = true;
    add_option(fmt::format("chunks_{}", window), shape);
  }
  AttentionShape shape = plain;
  shape.softcap = 2.0F;
  add_option("softcap", shape);
  shape.sinks = true;
  add_option("softcap_sinks", shape);
  shape = plain;
  shape.sinks = true;
  shape.window = 50;
  add_option("sinks_window", shape);
  shape = plain;
  shape.causal = false;
  add_option("not_causal", shape);
}

// BF16 queries beyond F16's range, to which the products with FP8 keys convert them. The logits are
// as large as in the other cases.
std::vector<AttentionCase> query_range_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF8E4M3}) {
    for (const float query_scale : {2e30F, 2e-30F}) {
      for (const int dim : {128, 512}) {
        AttentionCase spec{
            .name = fmt::format("{}_queries_dim{}_{}", query_scale > 1.0F ? "huge" : "tiny", dim,
                                dtype_name(kv)),
            .shape = make_attention_shape(16, 2, dim, 16, kv),
            .reqs = {{1, 0, 1}, {1, 100, 2}, {1, 2600, 3}}};
        spec.shape.scale *= 3.0F / query_scale;
        spec.query_scale = query_scale;
        cases.push_back(std::move(spec));
      }
    }
  }
  return cases;
}

// Cases in addition to those that all backends share.
std::vector<AttentionCase> own_cases() {
  std::vector<AttentionCase> cases;
  const auto add = [&](std::string name, const AttentionShape& shape, auto reqs, int q_len) {
    cases.push_back({.name = std::move(name), .shape = shape, .reqs = std::move(reqs)});
    cases.back().max_decode_q_len = q_len;
    cases.back().k_scale = 0.02F;
    cases.back().v_scale = 0.01F;
  };
  using Reqs = std::vector<AttentionRequest>;
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    const std::string suffix = "_" + std::string(dtype_name(kv));
    for (const int dim : {64, 128, 256, 320, 512}) {
      const std::string name = std::to_string(dim) + suffix;
      add("long_decode_" + name, make_attention_shape(16, 2, dim, 32, kv),
          Reqs{{1, 6000, 1}, {1, 1, 2}, {1, 0, 3}, {1, 3333, 4}}, 1);
      // One whole tile of packed rows, and more than one.
      add("verify_wide_" + name, make_attention_shape(16, 2, dim, 16, kv),
          Reqs{{8, 2100, 1}, {8, 8, 2}, {8, 0, 3}, {8, 517, 4}}, 8);
      add("verify_over_a_tile_" + name, make_attention_shape(40, 2, dim, 64, kv),
          Reqs{{5, 1100, 1}, {5, 70, 2}}, 5);
      add("long_prefill_" + name, make_attention_shape(8, 2, dim, 16, kv),
          Reqs{{300, 300, 1}, {129, 1000, 2}, {64, 64, 3}, {0, 0, 4}, {33, 2050, 5}}, 0);
    }
    // Blocks of a drafter, whose tokens attend to each other in both directions: 16 packed rows and
    // 12 of 16, a whole tile of rows, and more than one without splits.
    for (const int dim : {64, 128, 256, 512}) {
      const std::string name = std::to_string(dim) + suffix;
      const auto add_blocks = [&](std::string title, int num_heads, int page, int q_len,
                                  int num_kv_heads = 2) {
        AttentionShape shape = make_attention_shape(num_heads, num_kv_heads, dim, page, kv);
        shape.causal = false;
        add(std::move(title) + name, shape,
            Reqs{{q_len, 2100, 1}, {q_len, q_len, 2}, {q_len, 0, 3}, {q_len, 517, 4}}, q_len);
      };
      add_blocks("blocks_of_4_", 8, 16, 4);
      add_blocks("blocks_of_3_", 8, 64, 3);
      add_blocks("blocks_of_8_", 16, 32, 8);
      add_blocks("blocks_of_16_", 10, 16, 16);
      if (dim == 128) add_blocks("blocks_of_many_heads_", 64, 16, 8, 16);
    }
    add_few_rows(kv, cases);
    add_wide_heads(kv, cases);
    // One request, whose splits are one cluster, several or none. In its graph, the last cluster of
    // a shorter context has one split with positions.
    for (const auto& [group, q_len, dim] :
         {std::tuple(8, 1, 128), {4, 2, 64}, {3, 1, 256}, {1, 1, 16}, {8, 1, 512}, {2, 3, 320}}) {
      for (const int kv_len : {1100, 3073, 9001, 20011}) {
        add(fmt::format("clusters_{}x{}_dim{}_{}{}", group, q_len, dim, kv_len, suffix),
            make_attention_shape(group, 1, dim, 16, kv), Reqs{{q_len, kv_len, 1}}, q_len);
      }
    }
    // One long context among short ones. It takes thread blocks of the short ones, which share what
    // is left. A request has one thread block per KV head, two in a cluster, or four in two
    // clusters. Replays with other lengths have other plans.
    for (const auto& [group, num_kv_heads, num_reqs, q_len, dim] : {std::tuple(8, 8, 33, 1, 128),
                                                                    {8, 8, 16, 1, 128},
                                                                    {8, 8, 8, 1, 128},
                                                                    {4, 8, 9, 1, 128},
                                                                    {1, 16, 40, 1, 128},
                                                                    {8, 4, 66, 5, 128},
                                                                    {4, 8, 9, 5, 128},
                                                                    {16, 4, 20, 2, 128},
                                                                    {8, 2, 33, 1, 512},
                                                                    {8, 2, 4, 1, 512},
                                                                    {4, 1, 5, 2, 256},
                                                                    {4, 1, 60, 2, 320}}) {
      Reqs reqs;
      for (int i = 0; i < num_reqs; ++i) {
        const int kv_len = i == num_reqs / 2 ? 9000 : i * 37 % 300;
        reqs.push_back(
            {q_len, kv_len == 0 ? 0 : std::max(q_len, kv_len), static_cast<uint64_t>(i + 1)});
      }
      add(fmt::format("outlier_{}x{}x{}_dim{}_of_{}{}", group, q_len, num_kv_heads, dim, num_reqs,
                      suffix),
          make_attention_shape(group * num_kv_heads, num_kv_heads, dim, 16, kv), reqs, q_len);
    }
    AttentionShape window = make_attention_shape(16, 2, 128, 16, kv);
    window.window = 700;
    window.sinks = true;
    window.softcap = 3.0F;
    add("window_sinks_softcap_splits" + suffix, window,
        Reqs{{3, 4000, 1}, {3, 700, 2}, {3, 701, 3}, {3, 0, 4}}, 3);
    window.num_heads = 96;
    window.num_kv_heads = 16;
    add("window_sinks_softcap_many_heads" + suffix, window,
        Reqs{{3, 4000, 1}, {3, 700, 2}, {3, 701, 3}, {3, 0, 4}}, 3);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Native, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(
                             {.make = cuda::make_native_attention,
                              .q_dtypes = {DType::kBF16, DType::kF16, DType::kF32}})),
                         cuda_attention_name);

INSTANTIATE_TEST_SUITE_P(NativeOwn, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(
                             {.make = cuda::make_native_attention, .cases = own_cases()})),
                         cuda_attention_name);

INSTANTIATE_TEST_SUITE_P(
    NativeQueryRange, CudaAttentionTest,
    ::testing::ValuesIn(cuda_attention_params({.make = cuda::make_native_attention,
                                               .q_dtypes = {DType::kBF16},
                                               .cases = query_range_cases()})),
    cuda_attention_name);

INSTANTIATE_TEST_SUITE_P(NativeModels, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_model_params({cuda::make_native_attention})),
                         cuda_attention_name);

INSTANTIATE_TEST_SUITE_P(NativeFeatures, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_feature_params({cuda::make_native_attention})),
                         cuda_attention_name);

TEST(NativeAttentionSupport, ServesEveryCase) {
  const auto backend = cuda::make_native_attention({});
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 80, .name = "A100"};
  for (const AttentionCase& spec : attention_cases()) {
    if (spec.shape.head_dim > cuda::native::kMaxDim) continue;
    for (const DType q : {DType::kF32, DType::kF16, DType::kBF16}) {
      AttentionShape shape = spec.shape;
      shape.q = shape.out = q;
      for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
        EXPECT_THAT(backend->supports(shape, {.phase = phase}, device).reasons, IsEmpty())
            << spec.name;
      }
    }
  }
}

TEST(NativeAttentionSupport, SaysWhichWideHeadsHaveNoTensorCores) {
  const auto backend = cuda::make_native_attention({});
  Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  const auto reasons = [&](const AttentionShape& shape, const AttentionUse& use) {
    const Support support = backend->supports(shape, use, device);
    EXPECT_THAT(support.reasons, IsEmpty());
    return support.reasons_to_prefer_others;
  };
  const AttentionUse prefill = {.phase = Phase::kPrefill};
  AttentionShape shape = shape_of(16, 1, 576, DType::kBF16, DType::kBF16);
  shape.head_dim_v = 512;
  shape.is_latent = true;
  EXPECT_THAT(reasons(shape, {}), ElementsAre("the largest head dimension is 576; above 512, the "
                                              "kernel does not use tensor cores."));
  shape.head_dim = 584;
  EXPECT_THAT(backend->supports(shape, {}, device).reasons,
              ElementsAre("head_dim is 584; it must be a multiple of 8 from 8 to 576."));
  shape = shape_of(16, 2, 512, DType::kBF16, DType::kF8E4M3);
  EXPECT_THAT(reasons(shape, {}), IsEmpty());
  EXPECT_THAT(reasons(shape, {.q_len = 2}), IsEmpty());
  EXPECT_THAT(reasons(shape, prefill), IsEmpty());
  device = {.kind = DeviceKind::kCuda, .compute_capability = 80, .name = "A100"};
  EXPECT_THAT(reasons(shape, {}), IsEmpty());
  EXPECT_THAT(reasons(shape, {.q_len = 2}),
              ElementsAre("the largest head dimension is 512; above 256, the kernel of more than 8 "
                          "query rows per KV head does not use tensor cores."));
  EXPECT_THAT(reasons(shape, prefill), SizeIs(1));
  shape = shape_of(16, 2, 256, DType::kBF16, DType::kF8E4M3);
  EXPECT_THAT(reasons(shape, prefill), IsEmpty());
}

TEST(NativeAttentionSupport, NamesEveryReason) {
  AttentionShape shape = make_attention_shape(6, 4, 44, 24, DType::kI32);
  shape.head_dim_v = 584;
  shape.q = DType::kF8E4M3;
  const auto backend = cuda::make_native_attention({});
  const Device old{.kind = DeviceKind::kCuda, .compute_capability = 75, .name = "T4"};
  EXPECT_THAT(backend->supports(shape, {}, old).reasons,
              ElementsAre("num_heads is 6; it must be a multiple of num_kv_heads, which is 4.",
                          "page_size is 24; it must be 16, 32 or 64.",
                          "compute capability is 75; it must be 80 or later.",
                          "head_dim is 44; it must be a multiple of 8 from 8 to 576.",
                          "head_dim_v is 584; it must be a multiple of 8 from 8 to 576.",
                          "q is fp8_e4m3; it must be f32, f16 or bf16.",
                          "out is f32; it must be the type of q, which is fp8_e4m3.",
                          "kv is i32; it must be f32, f16, bf16 or fp8_e4m3."));
  EXPECT_THAT(
      backend->supports(shape_of(8, 8, 64, DType::kBF16, DType::kBF16), {}, Device()).reasons,
      ElementsAre("device is a CPU; it must be an NVIDIA GPU."));
}

TEST(NativeAttentionPlan, ChoosesTheKernelByRowsAndDtypes) {
  const auto kind_of = [](const AttentionShape& shape, Phase phase, int q_len, bool aligned) {
    const PhaseRange range{
        .num_reqs = 3, .num_tokens = 3 * q_len, .max_q_len = q_len, .max_kv_len = 1000};
    return cuda::native::choose_kernel(shape, phase, range, aligned, kGpu).kind;
  };
  const AttentionShape bf16 = shape_of(32, 8, 128, DType::kBF16, DType::kF8E4M3);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 1, true), KernelKind::kRows8);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 2, true), KernelKind::kRows8);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 3, true), KernelKind::kRows16);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 4, true), KernelKind::kRows16);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 5, true), KernelKind::kTile);
  EXPECT_EQ(kind_of(bf16, Phase::kPrefill, 1, true), KernelKind::kTile);
  EXPECT_EQ(kind_of(bf16, Phase::kDecode, 1, false), KernelKind::kGeneric);
  for (const int dim : {64, 72, 128, 136}) {
    for (const int num_kv_heads : {8, 32}) {
      const AttentionShape same =
          shape_of(8 * num_kv_heads, num_kv_heads, dim, DType::kF16, DType::kF16);
      const bool has_rows64 = dim > 64 && dim <= 128 && num_kv_heads == 32;
      const KernelKind many_rows = has_rows64 ? KernelKind::kRows64 : KernelKind::kTile;
      EXPECT_EQ(kind_of(same, Phase::kDecode, 1, true), KernelKind::kRows8);
      EXPECT_EQ(kind_of(same, Phase::kDecode, 2, true), KernelKind::kRows16);
      EXPECT_EQ(kind_of(same, Phase::kDecode, 3, true), many_rows);
      EXPECT_EQ(kind_of(same, Phase::kDecode, 8, true), many_rows);
      EXPECT_EQ(kind_of(same, Phase::kDecode, 9, true), KernelKind::kTile);
    }
  }
  for (const int dim : {264, 512}) {
    const AttentionShape wide = shape_of(16, 4, dim, DType::kBF16, DType::kBF16);
    EXPECT_EQ(kind_of(wide, Phase::kDecode, 2, true), KernelKind::kRows8);
    EXPECT_EQ(kind_of(wide, Phase::kDecode, 3, true), KernelKind::kWide);
    EXPECT_EQ(kind_of(wide, Phase::kPrefill, 1, true), KernelKind::kWide);
    EXPECT_EQ(kind_of(wide, Phase::kDecode, 3, false), KernelKind::kGeneric);
    const PhaseRange range{.num_reqs = 1, .num_tokens = 9, .max_q_len = 9, .max_kv_len = 1000};
    for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
      EXPECT_EQ(cuda::native::choose_kernel(wide, phase, range, true, {.num_sms = 108}).kind,
                KernelKind::kGeneric);
    }
  }
  const AttentionShape mixed = shape_of(32, 8, 128, DType::kBF16, DType::kF16);
  EXPECT_EQ(kind_of(mixed, Phase::kDecode, 1, true), KernelKind::kGeneric);
  const AttentionShape f32 = shape_of(32, 8, 128, DType::kF32, DType::kF8E4M3);
  EXPECT_EQ(kind_of(f32, Phase::kPrefill, 9, true), KernelKind::kGeneric);
}

// A split has at least 32 KB of keys. Short contexts are split by one cluster, and long ones so
// that they fill the GPU, in clusters of two if there are many rows.
TEST(NativeAttentionPlan, SplitsFillTheGpu) {
  const auto splits_of_shape = [](const AttentionShape& shape, int num_reqs, int kv_len,
                                  const cuda::native::GpuTraits& gpu) {
    const PhaseRange range{
        .num_reqs = num_reqs, .num_tokens = num_reqs, .max_q_len = 1, .max_kv_len = kv_len};
    const auto choice = cuda::native::choose_kernel(shape, Phase::kDecode, range, true, gpu);
    return std::pair(choice.num_splits, choice.cluster);
  };
  const auto splits_of = [&](DType kv, int num_reqs, int kv_len, bool has_clusters = true,
                             int num_heads = 64) {
    return splits_of_shape(shape_of(num_heads, 8, 128, DType::kBF16, kv), num_reqs, kv_len,
                           {.num_sms = 132, .has_clusters = has_clusters});
  };
  EXPECT_EQ(splits_of(DType::kF8E4M3, 1, 512), std::pair(1, 1));
  EXPECT_EQ(splits_of(DType::kBF16, 1, 700), std::pair(6, 6));
  EXPECT_EQ(splits_of(DType::kBF16, 1, 4096), std::pair(8, 8));
  EXPECT_EQ(splits_of(DType::kBF16, 1, 8192), std::pair(32, 2));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 1, 131072), std::pair(32, 2));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 3, 1024), std::pair(4, 4));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 3, 131072), std::pair(10, 2));
  EXPECT_EQ(splits_of(DType::kBF16, 4, 4096), std::pair(4, 4));
  EXPECT_EQ(splits_of(DType::kBF16, 4, 8192), std::pair(8, 2));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 6, 131072), std::pair(5, 1));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 8, 1024), std::pair(2, 2));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 8, 131072), std::pair(4, 2));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 32, 8192), std::pair(1, 1));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 128, 8192), std::pair(1, 1));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 300, 1150), std::pair(1, 1));
  // Few thread blocks with many columns are merged in large clusters.
  const auto wide_splits_of = [&](DType kv, int num_reqs, int kv_len) {
    return splits_of_shape(shape_of(16, 2, 512, DType::kBF16, kv), num_reqs, kv_len, kGpu);
  };
  EXPECT_EQ(wide_splits_of(DType::kBF16, 1, 512), std::pair(8, 8));
  EXPECT_EQ(wide_splits_of(DType::kBF16, 1, 1024), std::pair(32, 8));
  EXPECT_EQ(wide_splits_of(DType::kBF16, 1, 8192), std::pair(112, 8));
  EXPECT_EQ(wide_splits_of(DType::kF8E4M3, 4, 8192), std::pair(24, 8));
  EXPECT_EQ(wide_splits_of(DType::kBF16, 6, 8192), std::pair(16, 8));
  EXPECT_EQ(wide_splits_of(DType::kBF16, 8, 4096), std::pair(16, 2));
  EXPECT_EQ(wide_splits_of(DType::kF8E4M3, 64, 8192), std::pair(2, 2));
  // With few rows, the L2 merges more than one cluster's splits, or those of several requests.
  EXPECT_EQ(splits_of(DType::kBF16, 1, 4096, true, 32), std::pair(8, 8));
  EXPECT_EQ(splits_of(DType::kBF16, 2, 4096, true, 32), std::pair(15, 1));
  EXPECT_EQ(splits_of(DType::kBF16, 1, 8192, true, 32), std::pair(30, 1));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 1, 131072, false), std::pair(30, 1));
  EXPECT_EQ(splits_of(DType::kF8E4M3, 8, 1024, false), std::pair(4, 1));
}

// Any batch within the limits fits into the workspace of the plan, which is at most `most_excess`
// times the need of the largest.
void expect_bounded_workspace(const AttentionShape& shape, size_t most_excess) {
  const auto needed = [&](int num_reqs, int q_len, int kv_len) {
    const PhaseRange range{.num_reqs = num_reqs,
                           .num_tokens = num_reqs * q_len,
                           .max_q_len = q_len,
                           .max_kv_len = kv_len};
    const auto choice = cuda::native::choose_kernel(shape, Phase::kDecode, range, true, kGpu);
    return cuda::native::partial_bytes(shape, q_len, choice.num_partials);
  };
  for (const int max_kv_len : {1, 64, 1000, 131072}) {
    PlanLimits limits{
        .use = {.q_len = 16}, .max_num_reqs = 40, .max_num_tokens = 100, .max_kv_len = max_kv_len};
    size_t largest = 0;
    for (int num_reqs = 1; num_reqs <= 40; ++num_reqs) {
      for (int q_len = 1; q_len <= 16 && num_reqs * q_len <= 100; ++q_len) {
        for (const int kv_len : {1, 100, 300, 385, 513, 700, 900, 1500, 5000, max_kv_len}) {
          if (kv_len <= max_kv_len) largest = std::max(largest, needed(num_reqs, q_len, kv_len));
        }
      }
    }
    const size_t bound = cuda::native::max_partial_bytes(shape, limits, kGpu);
    EXPECT_GE(bound, largest) << max_kv_len;
    EXPECT_LE(bound, most_excess * largest) << max_kv_len;
    for (const int q_len : {1, 5, 8, 9}) {
      limits = {.use = {.q_len = q_len, .in_graph = true},
                .max_num_reqs = 7,
                .max_num_tokens = 7 * q_len,
                .max_kv_len = max_kv_len};
      const size_t of_graph = cuda::native::max_partial_bytes(shape, limits, kGpu);
      EXPECT_GE(of_graph, needed(7, q_len, max_kv_len));
      EXPECT_LE(of_graph, most_excess * needed(7, q_len, max_kv_len));
    }
    limits.use = {.phase = Phase::kPrefill};
    EXPECT_EQ(cuda::native::max_partial_bytes(shape, limits, kGpu), 0U);
  }
}

TEST(NativeAttentionPlan, WorkspaceBoundsEveryBatch) {
  expect_bounded_workspace(shape_of(64, 8, 128, DType::kBF16, DType::kBF16), 2);
  // The bound counts each split of a large cluster.
  expect_bounded_workspace(shape_of(16, 2, 512, DType::kBF16, DType::kBF16), 8);
}

// The clusters of each request, and the positions of the slowest cluster.
struct PlannedWork {
  std::vector<int> num_clusters;  // per request
  double slowest = 0.0;
};

// Checks that each part of each request belongs to exactly one cluster.
PlannedWork check_work(const cuda::native::WorkPlanner& planner, std::span<const int32_t> lens,
                       const cuda::native::WorkLimits& limits) {
  PlannedWork planned{.num_clusters = std::vector<int>(lens.size())};
  EXPECT_EQ(planner.clusters().size(), lens.size() * static_cast<size_t>(limits.num_parts));
  std::vector<int> expected(lens.size(), 0);  // clusters of each request
  int expected_part = 0;
  int split_req = -1;
  for (size_t i = 0; i < planner.clusters().size(); ++i) {
    const cuda::native::ClusterWork& work = planner.clusters()[i];
    if (work.num_parts == 0) continue;
    // The parts of a request belong to consecutive clusters.
    EXPECT_EQ(work.part, expected_part);
    if (work.part > 0) {
      EXPECT_EQ(work.req, split_req);
    }
    split_req = work.req;
    expected[static_cast<size_t>(work.req)] = work.num_parts;
    expected_part = work.part + 1 == work.num_parts ? 0 : work.part + 1;
    if (work.num_parts > 1) {
      EXPECT_LT(i, static_cast<size_t>(limits.max_split));
    }
    ++planned.num_clusters[static_cast<size_t>(work.req)];
    double tokens = lens[static_cast<size_t>(work.req)] / static_cast<double>(work.num_parts);
    for (int k = 0; k < work.num_more; ++k) {
      const int req = planner.more_reqs()[static_cast<size_t>(work.first_more + k)];
      ++planned.num_clusters[static_cast<size_t>(req)];
      expected[static_cast<size_t>(req)] = 1;
      tokens += lens[static_cast<size_t>(req)];
    }
    planned.slowest = std::max(planned.slowest, tokens);
  }
  EXPECT_EQ(expected_part, 0);
  EXPECT_THAT(expected, ::testing::Each(::testing::Ge(1)));
  EXPECT_EQ(planned.num_clusters, expected);
  return planned;
}

TEST(NativeAttentionWork, LongContextsTakeTheClustersOfShortOnes) {
  const cuda::native::WorkLimits limits = {
      .num_parts = 1, .clusters_at_once = 33, .max_split = 66, .extra_tokens = 128};
  std::vector<int32_t> lens(32, 4096);
  cuda::native::WorkPlanner planner;
  EXPECT_TRUE(planner.plan(lens, limits));
  EXPECT_TRUE(planner.is_even());
  EXPECT_EQ(check_work(planner, lens, limits).slowest, 4096);
  lens[7] = 131'072;
  EXPECT_TRUE(planner.plan(lens, limits));
  EXPECT_FALSE(planner.is_even());
  const PlannedWork planned = check_work(planner, lens, limits);
  EXPECT_EQ(planned.num_clusters[7], 16);
  EXPECT_EQ(planned.slowest, 8192);
  for (int32_t& len : lens) len += 60;
  EXPECT_FALSE(planner.plan(lens, limits));
  for (int32_t& len : lens) len += 300;
  EXPECT_TRUE(planner.plan(lens, limits));
  // Other batches start as others end, so only what delays all of them is split.
  lens.assign(256, 1024);
  lens[200] = 131'072;
  EXPECT_TRUE(planner.plan(lens, limits));
  EXPECT_GE(check_work(planner, lens, limits).num_clusters[200], 8);
  EXPECT_LT(check_work(planner, lens, limits).slowest, 20'000);
}

TEST(NativeAttentionWork, IsCompleteForAnyLengths) {
  std::mt19937 random(1);
  cuda::native::WorkPlanner planner;
  for (int round = 0; round < 500; ++round) {
    const int num_reqs = 1 + static_cast<int>(random() % 64);
    const int num_parts = 1 + static_cast<int>(random() % 6);
    const int at_once = 1 + static_cast<int>(random() % 40);
    const cuda::native::WorkLimits limits = {
        .num_parts = num_parts,
        .clusters_at_once = at_once,
        .max_split = num_parts > 1 ? num_reqs * num_parts : 2 * at_once,
        .extra_tokens = 1 << random() % 9};
    std::vector<int32_t> lens;
    for (int i = 0; i < num_reqs; ++i) {
      lens.push_back(static_cast<int32_t>(random() % 4 == 0 ? 0 : random() % (1 << random() % 18)));
    }
    planner.plan(lens, limits);
    const PlannedWork planned = check_work(planner, lens, limits);
    const double of_even = *std::ranges::max_element(lens) / double(num_parts);
    EXPECT_LE(planned.slowest, of_even + 0.5);
  }
}

TEST(NativeAttentionPlan, PlansAreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  check_independent_plans(*cuda::make_native_attention(*device), *device,
                          shape_of(32, 8, 128, DType::kBF16, DType::kBF16));
}

// Decode batches whose last tokens are alone in a step or a split, and among others.
std::vector<AttentionCase> late_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF8E4M3}) {
    for (const auto& [group, q_len, dim] :
         {std::tuple(8, 1, 128), {4, 2, 128}, {2, 3, 128}, {8, 1, 512}, {2, 3, 320}}) {
      AttentionCase spec{
          .name = fmt::format("late_{}x{}_dim{}_{}", group, q_len, dim, dtype_name(kv)),
          .shape = make_attention_shape(2 * group, 2, dim, 16, kv)};
      spec.max_decode_q_len = q_len;
      for (const int kv_len : {q_len, 16, 17, 64, 65, 193, 257, 700, 1025, 5001}) {
        spec.reqs.push_back({q_len, kv_len, static_cast<uint64_t>(kv_len)});
      }
      cases.push_back(std::move(spec));
    }
  }
  AttentionCase many_rows = cases.front();
  many_rows.name = "late_many_rows";
  many_rows.shape = make_attention_shape(64, 8, 128, 16, DType::kBF16);
  many_rows.max_decode_q_len = 5;
  for (AttentionRequest& req : many_rows.reqs) {
    req.q_len = 5;
    req.kv_len = std::max(req.kv_len, 5);
  }
  cases.push_back(std::move(many_rows));
  return cases;
}

TEST(NativeAttentionOverlap, WaitsForTheStepsOwnTokens) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const auto backend = cuda::make_native_attention(*device);
  for (const AttentionCase& spec : late_cases()) {
    SCOPED_TRACE(spec.name);
    check_late_tokens(*backend, *device, spec, DType::kBF16);
  }
}

// The test above would notice a kernel that reads these tokens too early.
TEST(NativeAttentionOverlap, ReadsSettledTokensEarly) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  if (device->device.compute_capability < 90) GTEST_SKIP() << "kernels do not overlap";
  const auto backend = cuda::make_native_attention(*device);
  for (AttentionCase spec : late_cases()) {
    // Short contexts, whose last tokens are in the first steps of their thread blocks.
    for (AttentionRequest& req : spec.reqs) req.kv_len = std::min(req.kv_len, 64);
    CudaAttentionProblem problem(spec, DType::kBF16);
    problem.run(*backend, device->device);  // CUDA loads a kernel when it first runs
    problem.write_new_tokens_late(true);
    const AttentionResult result = problem.run(*backend, device->device);
    EXPECT_TRUE(std::ranges::any_of(result.out, [](float x) { return std::isnan(x); }))
        << spec.name;
  }
}

TEST(NativeAttentionFeatures, PaddingGivesZerosInEveryKernel) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const auto backend = cuda::make_native_attention(*device);
  for (const DType q : {DType::kBF16, DType::kF32}) {
    for (const int q_len : {1, 8}) {
      AttentionCase spec{.name = "padding",
                         .shape = make_attention_shape(8, 2, 64, 16, DType::kBF16),
                         .reqs = {{q_len, 0, 1}, {q_len, 0, 2}, {9, 0, 3}}};
      spec.shape.sinks = true;
      spec.max_decode_q_len = 8;
      check_cuda_attention(*backend, *device, spec, q);
    }
  }
}

}  // namespace
}  // namespace quire::testing
