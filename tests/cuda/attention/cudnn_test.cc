#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

#include "cuda/attention/backends.h"
#include "cuda_attention_cases.h"

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

std::vector<CudaAttentionParam> one_token_per_request(std::vector<CudaAttentionParam> params) {
  std::erase_if(params, [](const auto& param) { return param.spec.max_decode_q_len > 1; });
  return params;
}

CudaAttentionSuite suite() {
  CudaAttentionSuite suite{.make = cuda::make_cudnn_attention};
  std::erase_if(suite.cases, [](const AttentionCase& spec) { return spec.max_decode_q_len > 1; });
  for (const AttentionCase& spec : more_cases()) suite.cases.push_back(spec);
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
  EXPECT_EQ(num_served(cuda_attention_params(suite()), *device), 54);
  EXPECT_EQ(num_served(one_token_per_request(cuda_model_params(suite())), *device), 128);
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
  EXPECT_GE(backend->supports(shape, {.phase = Phase::kPrefill}, device).reasons.size(), 6U);
}

AttentionShape llama_shape() {
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  return shape;
}

TEST(CudnnSupport, RefusesSeveralQueryTokensAndIsForGraphs) {
  const auto backend = cuda::make_cudnn_attention({});
  const Device device{.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
  const auto support = [&](const AttentionUse& use) {
    return backend->supports(llama_shape(), use, device);
  };
  EXPECT_EQ(support({.q_len = 2, .in_graph = true}).reasons.size(),
            support({.in_graph = true}).reasons.size() + 1);
  EXPECT_TRUE(support({.in_graph = true}).reasons_to_prefer_others.empty());
  EXPECT_EQ(support({}).reasons_to_prefer_others.size(), 1U);
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

}  // namespace
}  // namespace quire::testing
