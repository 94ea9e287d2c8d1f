#include "cuda_attention_cases.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "cuda_attention_problem.h"

namespace quire::testing {
namespace {

// Of out and lse. Backends round the softmax's weights to the query type before they multiply.
struct Tolerance {
  float out;
  float lse;
};

Tolerance tolerance_of(DType q) {
  if (q == DType::kF32) return {1e-4F, 1e-4F};
  return q == DType::kF16 ? Tolerance{3e-3F, 2e-3F} : Tolerance{1e-2F, 2e-3F};
}

void take_rows(const std::vector<float>& from, size_t row_size, const PhaseRange& range,
               std::vector<float>& to) {
  if (from.empty()) return;
  const auto begin = from.begin() + static_cast<int64_t>(row_size) * range.first_token;
  to.insert(to.end(), begin, begin + static_cast<int64_t>(row_size) * range.num_tokens);
}

// The rows of one phase's tokens.
AttentionResult rows_of(const AttentionResult& all, const AttentionShape& shape,
                        const PhaseRange& range) {
  AttentionResult rows;
  const auto num_heads = static_cast<size_t>(shape.num_heads);
  take_rows(all.out, num_heads * static_cast<size_t>(shape.head_dim_v), range, rows.out);
  take_rows(all.lse, num_heads, range, rows.lse);
  return rows;
}

void expect_same(const AttentionResult& actual, const AttentionResult& expected, DType q) {
  const Tolerance tolerance = tolerance_of(q);
  {
    SCOPED_TRACE("out");
    expect_close(actual.out, expected.out, tolerance.out);
  }
  if (actual.lse.empty()) return;
  SCOPED_TRACE("lse");
  expect_close(actual.lse, expected.lse, tolerance.lse);
}

void expect_untouched(const AttentionResult& rows) {
  const auto is_poison = [](float value) { return std::isnan(value); };
  EXPECT_TRUE(std::all_of(rows.out.begin(), rows.out.end(), is_poison));
  EXPECT_TRUE(std::all_of(rows.lse.begin(), rows.lse.end(), is_poison));
}

// Reasons are sentences a user can act on.
void expect_reasons(const Support& support) {
  for (const std::string& reason : support.reasons) {
    EXPECT_GE(reason.size(), size_t{10}) << reason;
    EXPECT_TRUE(reason.ends_with(".")) << reason;
  }
}

// Half of what is there beside this step's tokens.
std::vector<int32_t> shorter(const AttentionCase& spec) {
  std::vector<int32_t> lengths;
  for (const AttentionRequest& req : spec.reqs) {
    lengths.push_back(req.kv_len == 0 ? 0 : req.q_len + (req.kv_len - req.q_len) / 2);
  }
  return lengths;
}

std::vector<int32_t> with_padding(std::vector<int32_t> lengths) {
  for (size_t i = 1; i < lengths.size(); i += 2) lengths[i] = 0;
  return lengths;
}

void check_eager(CudaAttentionProblem& problem, AttentionBackend& backend, const Device& device) {
  const AttentionShape& shape = problem.shape();
  const AttentionBatch& batch = problem.host().batch();
  const AttentionResult expected = problem.expected(problem.seq_lens());
  const AttentionResult actual = problem.run(backend, device);
  for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
    const bool is_decode = phase == Phase::kDecode;
    SCOPED_TRACE(is_decode ? "decode" : "prefill");
    const PhaseRange& range = is_decode ? batch.decode : batch.prefill;
    const AttentionResult rows = rows_of(actual, shape, range);
    if (backend.supports(shape, phase, device).ok()) {
      expect_same(rows, rows_of(expected, shape, range), shape.q);
    } else {
      expect_untouched(rows);
    }
  }
}

void check_replays(CudaAttentionProblem& problem, AttentionBackend& backend) {
  const std::vector<int32_t> half = shorter(problem.host().spec());
  const std::vector<std::vector<int32_t>> lengths = {half, problem.seq_lens(),
                                                     with_padding(problem.seq_lens())};
  const std::vector<AttentionResult> results = problem.replay(backend, lengths);
  for (size_t i = 0; i < lengths.size(); ++i) {
    SCOPED_TRACE(fmt::format("graph, lengths {}", i));
    expect_same(results[i], problem.expected(lengths[i]), problem.shape().q);
  }
}

}  // namespace

Result<cuda::DeviceInfo> test_device() {
  static const Result<cuda::DeviceInfo> device = cuda::open_device(0);
  return device;
}

void check_cuda_attention(AttentionBackend& backend, const cuda::DeviceInfo& device,
                          const AttentionCase& spec, DType q, bool lse) {
  AttentionShape shape = spec.shape;
  shape.q = shape.out = q;
  const Support decode = backend.supports(shape, Phase::kDecode, device.device);
  const Support prefill = backend.supports(shape, Phase::kPrefill, device.device);
  expect_reasons(decode);
  expect_reasons(prefill);
  if (!decode.ok() && !prefill.ok()) GTEST_SKIP() << decode.reasons[0];
  CudaAttentionProblem problem(spec, q, lse);
  check_eager(problem, backend, device.device);
  if (decode.ok() && problem.host().batch().prefill.num_reqs == 0) check_replays(problem, backend);
}

void CudaAttentionTest::SetUp() {
  const Result<cuda::DeviceInfo> device = test_device();
  if (!device.ok()) GTEST_SKIP() << device.status().message();
  device_ = *device;
}

TEST_P(CudaAttentionTest, EqualsReference) {
  const auto backend = GetParam().make(device_);
  check_cuda_attention(*backend, device_, GetParam().spec, GetParam().q, GetParam().lse);
}

std::vector<CudaAttentionParam> cuda_attention_params(const CudaAttentionSuite& suite) {
  std::vector<CudaAttentionParam> params;
  for (const DType q : suite.q_dtypes) {
    for (const AttentionCase& spec : suite.cases) {
      params.push_back({suite.make, spec, q, suite.lse});
    }
  }
  return params;
}

std::string cuda_attention_name(const ::testing::TestParamInfo<CudaAttentionParam>& info) {
  return fmt::format("{}_q_{}", info.param.spec.name, dtype_name(info.param.q));
}

}  // namespace quire::testing
