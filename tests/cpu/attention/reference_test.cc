// Compares the reference backend with a dense softmax that has neither pages, phases nor batches.
#include "cpu/attention/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/thread_pool.h"
#include "support/attention_cases.h"

namespace quire::testing {
namespace {

AttentionResult dense_attention(const AttentionProblem& problem) {
  const AttentionShape& shape = problem.shape();
  AttentionResult result;
  for (size_t req = 0; req < problem.spec().reqs.size(); ++req) {
    const auto [q_len, kv_len, content] = problem.spec().reqs[req];
    const int req_idx = static_cast<int>(req);
    for (int t = 0; t < q_len; ++t) {
      for (int head = 0; head < shape.num_heads; ++head) {
        const int kv_head = head * shape.num_kv_heads / shape.num_heads;
        const size_t row = static_cast<size_t>(
            (problem.batch().query_start.host[req] + t) * shape.num_heads + head);
        const float* q = &problem.queries()[row * static_cast<size_t>(shape.head_dim)];
        const int here = kv_len - q_len + t;
        std::vector<double> weights(static_cast<size_t>(kv_len), 0.0);
        double sum = shape.sinks && kv_len > 0 ? std::exp(double{problem.sinks()[head]}) : 0.0;
        for (int p = 0; p < kv_len; ++p) {
          if (shape.causal && p > here) continue;
          if (shape.chunked && p / shape.window != here / shape.window) continue;
          if (shape.window > 0 && p <= here - shape.window) continue;
          double s = 0.0;
          for (int d = 0; d < shape.head_dim; ++d) {
            s += double{q[d]} * problem.key(req_idx, p, kv_head, d);
          }
          s *= shape.scale;
          if (shape.softcap > 0) s = shape.softcap * std::tanh(s / shape.softcap);
          sum += weights[static_cast<size_t>(p)] = std::exp(s);
        }
        for (int d = 0; d < shape.head_dim_v; ++d) {
          double out = 0.0;
          for (int p = 0; p < kv_len; ++p) {
            const double weight = weights[static_cast<size_t>(p)];
            if (weight > 0) out += weight / sum * problem.value(req_idx, p, kv_head, d);
          }
          result.out.push_back(static_cast<float>(out));
        }
      }
    }
  }
  return result;
}

class ReferenceAttentionTest : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(ReferenceAttentionTest, EqualsDenseSoftmax) {
  const auto backend = make_reference_attention();
  const AttentionProblem problem(GetParam());
  const AttentionResult actual = problem.run(*backend);
  const AttentionResult expected = dense_attention(problem);
  expect_close(actual.out, expected.out, 1e-6F);
}

TEST(ReferenceAttentionPlans, AreIndependent) {
  AttentionCase spec{.name = "first",
                     .shape = make_attention_shape(4, 2, 64, 16, DType::kF16),
                     .reqs = {{1, 40, 1}, {1, 700, 2}, {20, 20, 3}}};
  const AttentionProblem first(spec);
  spec.reqs = {{1, 9, 4}, {1, 0, 5}, {1, 77, 6}, {5, 90, 7}};
  const AttentionProblem second(spec);
  const auto backend = make_reference_attention();
  const auto results = run_interleaved({&first, &second}, *backend);
  EXPECT_EQ(results[0].out, first.run(*backend).out);
  EXPECT_EQ(results[1].out, second.run(*backend).out);
}

TEST(ReferenceAttentionPlans, ThreadsGiveTheSameBits) {
  const AttentionProblem problem({.name = "threads",
                                  .shape = make_attention_shape(4, 2, 64, 16, DType::kF16),
                                  .reqs = {{1, 40, 1}, {1, 300, 2}, {20, 20, 3}, {5, 90, 4}}});
  ThreadPool threads(3);
  EXPECT_EQ(problem.run(*make_reference_attention(&threads)).out,
            problem.run(*make_reference_attention()).out);
}

INSTANTIATE_TEST_SUITE_P(Cases, ReferenceAttentionTest, ::testing::ValuesIn(attention_cases()),
                         [](const auto& test) { return test.param.name; });
INSTANTIATE_TEST_SUITE_P(Int8Cases, ReferenceAttentionTest,
                         ::testing::ValuesIn(i8_attention_cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace quire::testing
