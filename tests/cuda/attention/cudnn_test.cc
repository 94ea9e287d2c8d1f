#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "cuda/attention/backends.h"
#include "cuda/attention/cudnn/sdpa.h"
#include "cuda_attention_cases.h"
#include "cuda_attention_problem.h"

namespace quire::testing {
namespace {

std::vector<AttentionCase> more_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF16}) {
    for (const int page_size : {16, 32, 64}) {
      cases.push_back({.name = fmt::format("long_{}_page{}", dtype_name(kv), page_size),
                       .shape = make_attention_shape(32, 8, 128, page_size, kv),
                       .reqs = {{1, 5000, 1}, {1, 0, 2}, {1, 255, 3}, {1, 257, 4}, {1, 3000, 5}}});
    }
    for (const int num_heads : {1, 2, 5, 8}) {
      cases.push_back({.name = fmt::format("group{}_{}", num_heads, dtype_name(kv)),
                       .shape = make_attention_shape(2 * num_heads, 2, 128, 16, kv),
                       .reqs = {{1, 77, 1}, {1, 1, 2}, {1, 1025, 3}}});
    }
  }
  return cases;
}

// The scales of an FP8 cache.
constexpr float kKScale = 0.02F;
constexpr float kVScale = 0.01F;

// Prompts whose cached prefix ends around a page's end, and one of 8192 tokens.
AttentionCase prefix_case(DType kv, int page_size) {
  AttentionCase spec{.name = fmt::format("prefill_prefix_{}_page{}", dtype_name(kv), page_size),
                     .shape = make_attention_shape(8, 2, 128, page_size, kv),
                     .max_decode_q_len = 0,
                     .k_scale = kKScale,
                     .v_scale = kVScale,
                     .bound_excess = page_size + 1};
  for (const int prefix : {0, 1, page_size - 1, page_size, page_size + 1, 8192}) {
    spec.reqs.push_back({40, prefix + 40, spec.reqs.size()});
  }
  return spec;
}

// Chunks of prompts, the last of one token, in any order; ends around those of kernels' tiles.
AttentionCase chunks_case(DType kv, int head_dim) {
  return {.name = fmt::format("prefill_chunks_{}_dim{}", dtype_name(kv), head_dim),
          .shape = make_attention_shape(8, 2, head_dim, 16, kv),
          .reqs = {{1, 1, 1},
                   {300, 600, 2},
                   {1, 500, 3},
                   {130, 0, 4},
                   {127, 127, 5},
                   {257, 1281, 6},
                   {128, 256, 7},
                   {0, 0, 8},
                   {129, 2177, 9}},
          .max_decode_q_len = 0,
          .k_scale = kKScale,
          .v_scale = kVScale};
}

// Several calls of cuDNN, most of them padded.
AttentionCase parts_case(DType kv) {
  AttentionCase spec{.name = fmt::format("prefill_parts_{}", dtype_name(kv)),
                     .shape = make_attention_shape(4, 2, 64, 16, kv),
                     .reqs = {{1, 40, 1}, {1, 300, 2}, {1500, 1500, 3}, {1100, 1203, 4}},
                     .k_scale = kKScale,
                     .v_scale = kVScale};
  for (int i = 0; i < 70; ++i) {
    const int q_len = 2 + 37 * i % 200;
    spec.reqs.push_back({q_len, i % 9 == 2 ? 0 : q_len + 53 * i % 400, 5 + uint64_t(i)});
  }
  return spec;
}

// Contexts that are gathered in groups, because two of them do not fit into the scratch.
AttentionCase groups_case(DType kv) {
  AttentionCase spec{.name = fmt::format("prefill_groups_{}", dtype_name(kv)),
                     .shape = make_attention_shape(4, 2, 128, 16, kv),
                     .max_decode_q_len = 0,
                     .k_scale = kKScale,
                     .v_scale = kVScale};
  for (int i = 0; i < 6; ++i) spec.reqs.push_back({20 + i, i == 3 ? 0 : 1000 - i, 1 + uint64_t(i)});
  return spec;
}

std::vector<AttentionCase> prefill_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    for (const int page_size : {16, 32, 64}) cases.push_back(prefix_case(kv, page_size));
    for (const int head_dim : {64, 80, 128, 256}) cases.push_back(chunks_case(kv, head_dim));
    cases.push_back(parts_case(kv));
    cases.push_back(groups_case(kv));
    cases.push_back({.name = fmt::format("prefill_shared_{}", dtype_name(kv)),
                     .shape = make_attention_shape(4, 4, 128, 32, kv),
                     .reqs = {{50, 350, 9}, {20, 320, 9}, {33, 333, 9}},
                     .max_decode_q_len = 0,
                     .share_pages = true,
                     .k_scale = kKScale,
                     .v_scale = kVScale});
  }
  return cases;
}

std::vector<CudaAttentionParam> one_token_per_request(std::vector<CudaAttentionParam> params) {
  std::erase_if(params, [](const auto& param) { return param.spec.max_decode_q_len > 1; });
  return params;
}

CudaAttentionSuite suite() {
  CudaAttentionSuite suite{.make = cuda::make_cudnn_attention};
  std::erase_if(suite.cases, [](const AttentionCase& spec) { return spec.max_decode_q_len > 1; });
  for (const AttentionCase& spec : more_cases()) suite.cases.push_back(spec);
  for (const AttentionCase& spec : prefill_cases()) suite.cases.push_back(spec);
  return suite;
}

INSTANTIATE_TEST_SUITE_P(Cudnn, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(suite())), cuda_attention_name);

INSTANTIATE_TEST_SUITE_P(CudnnModels, CudaAttentionTest,
                         ::testing::ValuesIn(one_token_per_request(cuda_model_params(suite()))),
                         cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(CudnnFeatures, CudaAttentionTest,
                         ::testing::ValuesIn(one_token_per_request(cuda_feature_params(suite()))),
                         cuda_attention_name);

// The number of served cases is exact, so that no supported case is skipped.
TEST(CudnnCases, AreServed) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  const Support support = cuda::make_cudnn_attention(*device)->supports(shape, {}, device->device);
  if (!support.ok()) GTEST_SKIP() << support.reasons[0];
  EXPECT_EQ(num_served(cuda_attention_params(suite()), *device), 104);
  EXPECT_EQ(num_served(one_token_per_request(cuda_model_params(suite())), *device), 192);
}

// A few plans serve eager batches of any size, and no step builds one.
TEST(CudnnPlan, CutsEagerBatches) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const auto backend = cuda::make_cudnn_attention(*device);
  AttentionCase spec{.name = "parts", .shape = make_attention_shape(32, 8, 128, 16, DType::kBF16)};
  for (int i = 0; i < 23; ++i) spec.reqs.push_back({1, i % 5 == 2 ? 0 : 1 + 40 * i, uint64_t(i)});
  check_cuda_attention(*backend, *device, spec, DType::kBF16);
}

TEST(CudnnSupport, RefusesWithAllReasons) {
  const auto backend = cuda::make_cudnn_attention({});
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kF8E4M3);
  shape.q = shape.out = DType::kBF16;
  shape.softcap = 30.0F;
  shape.sinks = true;
  shape.window = 100;
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 75, .name = "T4"};
  EXPECT_GE(backend->supports(shape, {.q_len = 2}, device).reasons.size(), 6U);
}

// So `auto` chooses among others for gpt-oss, and a flag that names cuDNN fails the start.
TEST(CudnnSupport, RefusesSinks) {
  const auto backend = cuda::make_cudnn_attention({});
  AttentionShape shape = make_attention_shape(64, 8, 64, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  shape.sinks = true;
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    EXPECT_THAT(backend->supports(shape, {.phase = phase, .in_graph = true}, device).reasons,
                ::testing::Contains("sinks is true; it must be false."));
  }
}

AttentionShape llama_shape() {
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  return shape;
}

TEST(CudnnSupport, ServesPromptsAndDecodeOfOneToken) {
  const auto backend = cuda::make_cudnn_attention({});
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  const auto support = [&](const AttentionUse& use) {
    return backend->supports(llama_shape(), use, device);
  };
  // The only other reason can be that the library is missing.
  const std::vector<std::string> others = support({.in_graph = true}).reasons;
  EXPECT_LE(others.size(), 1U);
  std::vector<std::string> of_several = others;
  of_several.push_back("q_len is 2; it must be 1.");
  EXPECT_THAT(support({.q_len = 2, .in_graph = true}).reasons,
              ::testing::UnorderedElementsAreArray(of_several));
  EXPECT_EQ(support({.phase = Phase::kPrefill, .q_len = 2}).reasons, others);
  EXPECT_TRUE(support({.in_graph = true}).reasons_to_prefer_others.empty());
  EXPECT_EQ(support({}).reasons_to_prefer_others.size(), 1U);
  EXPECT_EQ(support({.phase = Phase::kPrefill}).reasons_to_prefer_others.size(), 1U);
}

// Decode would need FP8 queries, too. For prompts the cache is copied as BF16.
TEST(CudnnSupport, ServesFp8CachesForPromptsOfBf16) {
  const auto backend = cuda::make_cudnn_attention({});
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  AttentionShape shape = llama_shape();
  shape.kv = DType::kF8E4M3;
  const auto reasons = [&](Phase phase) {
    return backend->supports(shape, {.phase = phase}, device).reasons;
  };
  EXPECT_THAT(reasons(Phase::kDecode),
              ::testing::Contains("kv is fp8_e4m3; it must be q's type, which is bf16."));
  EXPECT_LE(reasons(Phase::kPrefill).size(), 1U);  // the library may be missing
  shape.q = shape.out = DType::kF16;
  EXPECT_THAT(reasons(Phase::kPrefill),
              ::testing::Contains("kv is fp8_e4m3; it must be q's type, which is f16, or, with "
                                  "BF16 queries, FP8 (E4M3)."));
}

TEST(CudnnSupport, RefusesLatentCaches) {
  AttentionShape shape = llama_shape();
  shape.is_latent = true;
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  EXPECT_THAT(cuda::make_cudnn_attention({})->supports(shape, {}, device).reasons,
              ::testing::Contains("the cache is latent (multi-head latent attention); keys and "
                                  "values must be separate."));
}

TEST(CudnnPlan, PlansAreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  check_independent_plans(*cuda::make_cudnn_attention(*device), *device, llama_shape());
}

// Prompts within the same limits, so that their plans have the same sizes.
std::vector<AttentionRequest> prompts(int first, uint64_t content) {
  return {{first, first, content},
          {150, 800, content + 1},
          {300 - first, 300, content + 2},
          {3, 77, content + 3}};
}

// All plans are built by make_plan(): a build takes as long as many steps.
TEST(CudnnPrefillPlan, StepsBuildNothing) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const auto backend = cuda::make_cudnn_attention(*device);
  CudaAttentionProblem problem(
      {.name = "steps", .shape = llama_shape(), .reqs = prompts(120, 1), .max_decode_q_len = 0},
      DType::kBF16);
  const Support support = problem.supports(*backend, device->device, Phase::kPrefill);
  if (!support.ok()) GTEST_SKIP() << support.reasons[0];
  const int64_t before = cuda::cudnn::num_builds();
  problem.make_plans(*backend, device->device, false);
  const int64_t made = cuda::cudnn::num_builds();
  EXPECT_GT(made, before);
  EXPECT_LE(made, before + 8);
  for (int step = 0; step < 3; ++step) {
    problem.update();
    problem.run_plans();
  }
  expect_close(problem.read_back().out, problem.expected(problem.seq_lens()).out, 1e-2F);
  EXPECT_EQ(cuda::cudnn::num_builds(), made);
}

// Both plans are updated before either runs, and run in both orders.
TEST(CudnnPrefillPlan, PlansAreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  const auto backend = cuda::make_cudnn_attention(*device);
  AttentionCase spec{
      .name = "first", .shape = llama_shape(), .reqs = prompts(120, 1), .max_decode_q_len = 0};
  CudaAttentionProblem first(spec, DType::kBF16);
  spec.reqs = prompts(33, 5);
  CudaAttentionProblem second(spec, DType::kBF16);
  const Support support = first.supports(*backend, device->device, Phase::kPrefill);
  if (!support.ok()) GTEST_SKIP() << support.reasons[0];
  const std::vector<CudaAttentionProblem*> problems = {&first, &second};
  for (CudaAttentionProblem* problem : problems) {
    problem->make_plans(*backend, device->device, false);
  }
  for (CudaAttentionProblem* problem : problems) problem->update();
  for (const bool reversed : {false, true}) {
    for (CudaAttentionProblem* problem : problems) problem->poison();
    problems[reversed ? 1 : 0]->run_plans();
    problems[reversed ? 0 : 1]->run_plans();
    for (CudaAttentionProblem* problem : problems) {
      expect_close(problem->read_back().out, problem->expected(problem->seq_lens()).out, 1e-2F);
    }
  }
}

}  // namespace
}  // namespace quire::testing
