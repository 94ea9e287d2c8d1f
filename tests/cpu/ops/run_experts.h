// Runs the experts of a step on a CPU.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "ops_fixture.h"
#include "support/expert_cases.h"

namespace quire::testing {

// The output is NaN where nothing is written, and the workspace consists of NaNs. With `added_to`,
// the experts add to these numbers.
inline std::vector<float> run_experts(Ops& ops, const Experts& experts, Step& step,
                                      const std::vector<float>* added_to = nullptr) {
  const ExpertsShape& shape = experts.shape();
  std::vector<float> out(static_cast<size_t>(step.num_tokens * shape.hidden_size), NAN);
  if (added_to != nullptr) out = *added_to;
  const auto num_bytes =
      static_cast<size_t>(ops.experts()->workspace_bytes(shape, step.num_tokens));
  Buffer workspace = Buffer::host(num_bytes).value();
  if (num_bytes > 0) std::memset(workspace.data(), 0xFF, num_bytes);
  ops.experts()->run_experts({.experts = &experts,
                              .activation = step.activation,
                              .x = matrix(step.x, step.num_tokens, shape.hidden_size),
                              .ids = {step.ids.data(), DType::kI32, {step.num_tokens, shape.top_k}},
                              .weights = matrix(step.weights, step.num_tokens, shape.top_k),
                              .out = matrix(out, step.num_tokens, shape.hidden_size),
                              .adds = added_to != nullptr,
                              .workspace = {static_cast<std::byte*>(workspace.data()), num_bytes}});
  return out;
}

// Expects the bits of tokens that run alone, or in a smaller batch, to be those of `all`, the
// output of the whole step.
inline void expect_bits_of_parts(Ops& ops, const Experts& experts, const Step& whole,
                                 const std::vector<float>& all, const std::string& what) {
  const ExpertsShape& shape = experts.shape();
  const int64_t last = whole.num_tokens - 1;
  const int64_t parts[][2] = {{0, 1}, {3, 1}, {last, 1}, {5, 2}, {100, 33}, {7, 300}};
  for (const auto& [first, count] : parts) {
    Step part = part_of(whole, shape, first, count);
    const std::vector<float> got = run_experts(ops, experts, part);
    ASSERT_EQ(
        std::memcmp(got.data(), all.data() + first * shape.hidden_size, got.size() * sizeof(float)),
        0)
        << what << " tokens from " << first;
  }
}

}  // namespace quire::testing
