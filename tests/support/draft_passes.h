// Compares the passes of a draft head, which read its own states, with those of its reference.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/drafter_parts.h"
#include "support/model_harness.h"

namespace quire::testing {

// `head` has a draft_head(). `combined` are its inputs beside `tokens`, and `hidden` those of the
// reference. Pass 0 has all tokens of sequence 0; three passes, each of a next token, continue the
// head's own states. Then all tokens of sequence 1 but the last are context.
template <typename Reference>
void expect_passes_agree(Model& head, ModelHarness& harness, const Reference& reference,
                         std::vector<int32_t> tokens, const std::vector<int32_t>& next,
                         const std::vector<float>& combined,
                         std::vector<ReferenceTensors::Row> hidden, double tolerance,
                         const std::string& what) {
  const auto count = static_cast<int>(tokens.size());
  auto logits = harness.step({{0, tokens, combined}});
  ASSERT_TRUE(logits.ok()) << logits.status().message();
  typename Reference::Output expected = reference.run(tokens, hidden);
  expect_near_rows(logits->front(), expected.logits, tolerance, what + ", logits of pass 0");
  expect_near_rows(output_states(head, 0, count), expected.states, tolerance,
                   what + ", states of pass 0");
  std::vector<float> state = output_states(head, count - 1, 1);
  for (const int32_t token : next) {
    hidden.push_back(expected.states.back());
    tokens.push_back(token);
    logits = harness.step({{0, {token}, state}});
    expected = reference.run(tokens, hidden);
    expect_near_rows(logits->front(), {&expected.logits.back(), 1}, tolerance, what + ", logits");
    state = output_states(head, 0, 1);
    expect_near_rows(state, {&expected.states.back(), 1}, tolerance, what + ", states");
  }

  const auto last = static_cast<size_t>(count - 1);
  const auto of_last = combined.end() - std::ssize(combined) / count;
  const HarnessChunk context = {
      1, {tokens.begin(), tokens.begin() + count - 1}, {combined.begin(), of_last}};
  const Status status = harness.write_context(*head.draft_head(), {context});
  ASSERT_TRUE(status.ok()) << status.message();
  logits = harness.step({{1, {tokens[last]}, {of_last, combined.end()}}});
  expect_near_rows(logits->front(), {&expected.logits[last], 1}, tolerance,
                   what + ", after context");
}

}  // namespace quire::testing
