#include "cpu/attention/simd.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "cpu/attention/reference.h"
#include "support/attention_cases.h"

namespace quire {
namespace {

using testing::AttentionCase;
using testing::AttentionProblem;
using testing::AttentionResult;

// Of output and LSE, whatever the cache's dtype: both sides read the same stored numbers.
constexpr float kTolerance = 1e-5F;

class CpuAttentionTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(CpuAttentionTest, EqualsReference) {
  ThreadPool pool(2);
  const AttentionProblem problem(GetParam());
  const AttentionResult expected = problem.run(*make_reference_attention());
  const AttentionResult actual = problem.run(*make_cpu_attention(pool));
  testing::expect_close(actual.out, expected.out, kTolerance);
  testing::expect_close(actual.lse, expected.lse, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuAttentionTest, ::testing::ValuesIn(testing::attention_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace quire
