// The tests that every GPU attention backend passes. A backend registers them in three lines:
//
//   INSTANTIATE_TEST_SUITE_P(Xqa, CudaAttentionTest,
//                            ::testing::ValuesIn(cuda_attention_params({cuda::make_xqa_attention})),
//                            cuda_attention_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "cuda/base/device_info.h"
#include "support/attention_cases.h"

namespace quire::testing {

using MakeCudaAttention =
    std::function<std::unique_ptr<AttentionBackend>(const cuda::DeviceInfo& device)>;

// A backend and the options of its tests.
struct CudaAttentionSuite {
  MakeCudaAttention make;
  std::vector<DType> q_dtypes = {DType::kBF16, DType::kF16};
  std::vector<AttentionCase> cases = attention_cases();
};

struct CudaAttentionParam {
  MakeCudaAttention make;
  AttentionCase spec;
  DType q = DType::kBF16;
  bool features_matter = false;  // the result must differ from the one without soft cap, window,
                                 // chunks or sinks
};

// Shared by a program's tests: the device is opened once, and tests skip if there is none.
class CudaAttentionTest : public ::testing::TestWithParam<CudaAttentionParam> {
 protected:
  void SetUp() override;
  cuda::DeviceInfo device_;
};

// Every case with each query type. If a backend refuses a case, it must give reasons, and the case
// is skipped.
std::vector<CudaAttentionParam> cuda_attention_params(const CudaAttentionSuite& suite);

// Head counts of real models with each head_dim, page size and cache type; decode, verification of
// 2 to 8 tokens, ragged and mixed batches, prefill with and without a cached prefix; the heads of
// 512 elements of Gemma 4; a pool past 2^31 elements. Queries are F16 over an F16 cache, else BF16.
std::vector<CudaAttentionParam> cuda_model_params(const CudaAttentionSuite& suite);

// Soft cap, window and sinks, alone and together, and chunks; and the layers of gpt-oss. Each
// feature must change the result by ten times the tolerance.
std::vector<CudaAttentionParam> cuda_feature_params(const CudaAttentionSuite& suite);

// The number of cases that the backend serves on the device, in either phase; the others are
// skipped.
int num_served(const std::vector<CudaAttentionParam>& params, const cuda::DeviceInfo& device);

std::string cuda_attention_name(const ::testing::TestParamInfo<CudaAttentionParam>& info);

// The GPU; without one the status is the message of a test's skip.
Result<cuda::DeviceInfo> test_device();

// Checks one case completely: eagerly and, if the batch has decode requests alone, in a graph that
// is captured once for no lengths and replayed at others up to the graph's longest, some of them 0.
// Skips cases that the backend refuses.
void check_cuda_attention(AttentionBackend& backend, const cuda::DeviceInfo& device,
                          const AttentionCase& spec, DType q);

// Checks a batch of decode requests, eagerly and in a graph, when the kernel before the attention
// writes the keys and values of the step's tokens long after it has let the attention start.
void check_late_tokens(AttentionBackend& backend, const cuda::DeviceInfo& device,
                       const AttentionCase& spec, DType q);

// Two models of one shape in a process: two plans, both updated before either runs, eagerly and as
// graphs. Skips a shape that the backend refuses.
void check_independent_plans(AttentionBackend& backend, const cuda::DeviceInfo& device,
                             const AttentionShape& shape);

}  // namespace quire::testing
