#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cuda/attention/backends.h"
#include "cuda/attention/xqa/kernel.h"
#include "cuda/base/device_info.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda_attention_cases.h"

namespace quire::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

CudaAttentionSuite suite() {
  return {.make = cuda::make_xqa_attention};
}

// Contexts that are split among many thread blocks, and one of padding.
std::vector<AttentionRequest> long_contexts() {
  return {{1, 5000, 1}, {1, 0, 2}, {1, 255, 3}, {1, 256, 4}, {1, 257, 5}, {1, 3000, 6}};
}

// More thread blocks than the GPU holds at once, so nothing is split.
std::vector<AttentionRequest> many_requests(int q_len) {
  std::vector<AttentionRequest> reqs;
  for (int i = 0; i < 70; ++i) {
    reqs.push_back({q_len, i % 9 == 4 ? 0 : q_len + 13 * i, uint64_t(i)});
  }
  return reqs;
}

// Contexts that are split, some of them so that the first tokens attend to no position of a part.
std::vector<AttentionRequest> long_contexts_to_verify(int q_len) {
  return {{q_len, 8192, 1},
          {q_len, 0, 2},
          {q_len, q_len, 3},
          {q_len, 65, 4},
          {q_len, 5000, 5},
          {q_len, 64 + q_len - 1, 6},
          {q_len, 8192 + q_len / 2, 7}};
}

std::vector<AttentionCase> kernel_cases() {
  std::vector<AttentionCase> cases;
  const auto add = [&](std::string name, AttentionShape shape, auto reqs) {
    cases.push_back({.name = std::move(name), .shape = shape, .reqs = std::move(reqs)});
    cases.back().k_scale = 0.03F;
    cases.back().v_scale = 0.4F;
  };
  for (const DType kv : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    for (const int group : {1, 2, 4, 8}) {
      for (const int head_dim : {64, 128}) {
        for (const int page_size : {16, 32, 64}) {
          const AttentionShape shape = make_attention_shape(2 * group, 2, head_dim, page_size, kv);
          add(fmt::format("long_{}_group{}_dim{}_page{}", dtype_name(kv), group, head_dim,
                          page_size),
              shape, long_contexts());
        }
      }
    }
    AttentionShape shape = make_attention_shape(64, 8, 128, 16, kv);
    add(fmt::format("many_{}", dtype_name(kv)), shape, many_requests(1));
    shape = make_attention_shape(8, 2, 128, 16, kv);
    shape.scale = 0.3F;
    add(fmt::format("scale_{}", dtype_name(kv)), shape, long_contexts());
    shape.sinks = true;
    add(fmt::format("sinks_{}", dtype_name(kv)), shape, long_contexts());
    for (const int window : {1, 100, 256, 700, 4000}) {
      shape.window = window;
      add(fmt::format("sinks_window{}_{}", window, dtype_name(kv)), shape, long_contexts());
    }
  }
  return cases;
}

// Several query tokens: as many as a kernel is built for, and fewer.
std::vector<AttentionCase> verify_cases() {
  std::vector<AttentionCase> cases;
  for (const DType kv : {DType::kBF16, DType::kF16}) {
    const auto add = [&](std::string_view name, int group, int num_kv_heads, auto reqs) {
      const int q_len = reqs[0].q_len;
      AttentionShape shape = make_attention_shape(group * num_kv_heads, num_kv_heads, 128, 16, kv);
      shape.scale = 0.3F;
      for (const bool sinks : {false, true}) {
        shape.sinks = sinks;
        cases.push_back({.name = fmt::format("verify{}_{}_group{}{}_{}", q_len, name, group,
                                             sinks ? "_sinks" : "", dtype_name(kv)),
                         .shape = shape,
                         .reqs = reqs,
                         .max_decode_q_len = q_len});
      }
    };
    for (const auto& [group, q_len] : {std::pair(2, 8), {4, 2}, {4, 5}, {4, 8}, {8, 3}, {8, 4}}) {
      add("long", group, 2, long_contexts_to_verify(q_len));
      add("many", group, 8, many_requests(q_len));
    }
  }
  return cases;
}

CudaAttentionSuite kernel_suite() {
  CudaAttentionSuite kernels = suite();
  kernels.cases = kernel_cases();
  std::ranges::move(verify_cases(), std::back_inserter(kernels.cases));
  return kernels;
}

INSTANTIATE_TEST_SUITE_P(XqaModels, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_model_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(XqaFeatures, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_feature_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(Xqa, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(suite())), cuda_attention_name);
INSTANTIATE_TEST_SUITE_P(XqaKernels, CudaAttentionTest,
                         ::testing::ValuesIn(cuda_attention_params(kernel_suite())),
                         cuda_attention_name);

AttentionShape llama_shape() {
  AttentionShape shape = make_attention_shape(32, 8, 128, 16, DType::kBF16);
  shape.q = shape.out = DType::kBF16;
  return shape;
}

Device hopper() {
  return {.kind = DeviceKind::kCuda, .compute_capability = 90, .name = "H200"};
}

cuda::DeviceInfo hopper_info() {
  return {.device = hopper(), .num_sms = 132};
}

// The number of served cases is exact, so that no case with a kernel is skipped.
TEST(XqaCases, AreServed) {
  EXPECT_EQ(num_served(cuda_attention_params(suite()), hopper_info()), 35);
  EXPECT_EQ(num_served(cuda_model_params(suite()), hopper_info()), 121);
  EXPECT_EQ(num_served(cuda_feature_params(suite()), hopper_info()), 19);
  EXPECT_EQ(num_served(cuda_attention_params(kernel_suite()), hopper_info()), 120);
}

TEST(XqaSupport, ServesDecodeOnHopper) {
  const auto backend = cuda::make_xqa_attention(hopper_info());
  EXPECT_TRUE(backend->supports(llama_shape(), {}, hopper()).ok());
  EXPECT_TRUE(backend->supports(llama_shape(), {.in_graph = true}, hopper()).ok());
}

TEST(XqaSupport, RefusesWithAllReasons) {
  const auto backend = cuda::make_xqa_attention(hopper_info());
  AttentionShape shape = llama_shape();
  shape.softcap = 30.0F;
  shape.num_kv_heads = 1;
  Device device = hopper();
  device.compute_capability = 80;
  const Support support = backend->supports(shape, {.phase = Phase::kPrefill}, device);
  EXPECT_EQ(support.reasons.size(), 4U);
}

TEST(XqaSupport, RefusesLatentCaches) {
  AttentionShape shape = llama_shape();
  shape.is_latent = true;
  EXPECT_THAT(cuda::make_xqa_attention(hopper_info())->supports(shape, {}, hopper()).reasons,
              ElementsAre("the cache is latent (multi-head latent attention); keys and values must "
                          "be separate."));
}

// Serves up to 8 query tokens, and up to 32 query heads per KV head over all query tokens.
TEST(XqaSupport, ServesSeveralQueryTokens) {
  const auto backend = cuda::make_xqa_attention(hopper_info());
  const auto reasons = [&](AttentionShape shape, int q_len) {
    return backend->supports(shape, {.q_len = q_len, .in_graph = true}, hopper()).reasons;
  };
  AttentionShape shape = llama_shape();
  for (int q_len = 1; q_len <= 8; ++q_len) EXPECT_THAT(reasons(shape, q_len), IsEmpty()) << q_len;
  EXPECT_THAT(reasons(shape, 9), ElementsAre("q_len is 9; it must be at most 8."));
  shape.num_heads = 64;
  EXPECT_THAT(reasons(shape, 4), IsEmpty());
  EXPECT_THAT(reasons(shape, 5), ElementsAre("q_len is 5; it must be at most 4."));
}

TEST(XqaSupport, RefusesSeveralQueryTokensWithReasons) {
  const auto backend = cuda::make_xqa_attention(hopper_info());
  const auto reasons = [&](AttentionShape shape) {
    return backend->supports(shape, {.q_len = 2}, hopper()).reasons;
  };
  AttentionShape shape = llama_shape();
  shape.window = 100;
  EXPECT_THAT(reasons(shape),
              ElementsAre("window is 100; it must be 0 (off) for several query tokens."));
  shape = llama_shape();
  shape.kv = DType::kF8E4M3;
  EXPECT_THAT(reasons(shape), ElementsAre("q_len is 2; it must be 1."));
  shape = llama_shape();
  shape.num_heads = 56;
  EXPECT_THAT(
      reasons(shape),
      ElementsAre("no kernel is built for bf16 queries over a bf16 cache with head_dim 128, "
                  "7 query heads per KV head and pages of 16 tokens."));
}

TEST(XqaKernels, HaveTheSmallestTileThatHoldsTheTokens) {
  const auto tokens_of = [](int group_size, int q_len) {
    const auto* kernel = cuda::xqa::find_kernel({.q = DType::kBF16,
                                                 .kv = DType::kBF16,
                                                 .head_dim = 128,
                                                 .group_size = group_size,
                                                 .page_size = 16,
                                                 .q_len = q_len});
    return kernel == nullptr ? 0 : kernel->max_q_len;
  };
  EXPECT_EQ(tokens_of(4, 1), 1);
  EXPECT_EQ(tokens_of(4, 2), 8);
  EXPECT_EQ(tokens_of(4, 8), 8);
  EXPECT_EQ(tokens_of(4, 9), 0);
  EXPECT_EQ(tokens_of(8, 4), 4);
  EXPECT_EQ(tokens_of(8, 5), 0);
}

PlanLimits limits_of(int num_reqs, int max_kv_len, bool in_graph) {
  return {.use = {.in_graph = in_graph},
          .max_num_reqs = num_reqs,
          .max_num_tokens = num_reqs,
          .max_kv_len = max_kv_len};
}

// The check precedes all loading, so it needs no GPU.
TEST(XqaPlan, RefusesMoreThanAGridHolds) {
  const auto backend = cuda::make_xqa_attention(hopper_info());
  EXPECT_NE(backend->make_plan(llama_shape(), limits_of(65535 / 8, 1024, true)).status().code(),
            StatusCode::kUnimplemented);
  EXPECT_EQ(backend->make_plan(llama_shape(), limits_of(65535 / 8 + 1, 1024, true)).status().code(),
            StatusCode::kUnimplemented);
}

// Small batches are split and large ones are not: the workspace has the size for the batch that
// needs most.
TEST(XqaPlan, WorkspaceIsOfTheLargestSplitBatch) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  if (device->device.compute_capability != 90) GTEST_SKIP() << "this machine has no Hopper GPU";
  const auto backend = cuda::make_xqa_attention(hopper_info());
  const auto bytes = [&](int num_reqs, int max_kv_len, bool in_graph) {
    const auto plan = backend->make_plan(llama_shape(), limits_of(num_reqs, max_kv_len, in_graph));
    EXPECT_TRUE(plan.ok()) << plan.status().message();
    return plan.ok() ? (*plan)->workspace_bytes() : 0;
  };
  const size_t one = bytes(1, 1 << 17, true);
  const size_t all = bytes(256, 1 << 17, false);
  const size_t bytes_per_partial = 8 * 4 + 4 * 128 * 2;
  EXPECT_GT(one, 200 * bytes_per_partial);
  EXPECT_EQ(one, bytes(1, 1 << 17, false));
  EXPECT_GE(all, one);
  EXPECT_LT(all, 266 * bytes_per_partial);
  EXPECT_EQ(bytes(256, 1 << 17, true), 0U);
  EXPECT_EQ(bytes(256, 64, false), 0U);
}

TEST(XqaPlan, PlansAreIndependent) {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  check_independent_plans(*cuda::make_xqa_attention(*device), *device, llama_shape());
}

// The kernels fit into the shared memory that the layer tail's rings leave on an SM.
TEST(XqaKernels, FitBesideTheLayerTail) {
  if (const Status gpu = cuda::open_device(0).status(); !gpu.ok()) GTEST_SKIP() << gpu.message();
  int num_kernels = 0;
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    for (const int head_dim : {64, 128}) {
      for (const int group : {1, 2, 4, 8}) {
        for (const int page_size : {16, 32, 64}) {
          const auto* kernel = cuda::xqa::find_kernel({.q = dtype,
                                                       .kv = dtype,
                                                       .head_dim = head_dim,
                                                       .group_size = group,
                                                       .page_size = page_size});
          if (kernel == nullptr) continue;
          uint32_t shared_bytes = 0;
          ASSERT_EQ(cudaMemcpyFromSymbol(&shared_bytes, kernel->shared_bytes, sizeof(shared_bytes)),
                    cudaSuccess);
          EXPECT_LE(shared_bytes, cuda::tail::kAttentionBytes) << head_dim << " " << group;
          ++num_kernels;
        }
      }
    }
  }
  EXPECT_GT(num_kernels, 24);
}

}  // namespace
}  // namespace quire::testing
