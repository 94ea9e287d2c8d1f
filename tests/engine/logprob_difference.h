// How far two runs of the same requests are apart.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/tiny_engine.h"

namespace quire::testing {

// The largest difference of the log probabilities of the prompts' tokens.
inline double largest_difference(const std::vector<Collected>& got,
                                 const std::vector<Collected>& expected) {
  double largest = 0;
  EXPECT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const auto& want = expected[i].prompt_logprobs;
    EXPECT_EQ(got[i].prompt_logprobs.size(), want.size());
    for (size_t t = 1; t < std::min(got[i].prompt_logprobs.size(), want.size()); ++t) {
      largest = std::max(
          largest, std::abs(got[i].prompt_logprobs[t][0].logprob - double{want[t][0].logprob}));
    }
  }
  return largest;
}

}  // namespace quire::testing
