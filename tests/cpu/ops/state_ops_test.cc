// Compares the operations on recurrent states with their definitions in double, however the tokens
// are divided among steps.
#include "ops/state_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/numbers.h"
#include "ops_fixture.h"
#include "support/reference_ops.h"
#include "support/state_steps.h"

namespace quire::testing {
namespace {

// The states of two sequences, and the steps over them.
class ConvSteps {
 public:
  ConvSteps(StateOps& ops, int64_t channels, int kernel, int num_drafts)
      : ops_(ops),
        channels_(channels),
        kernel_(kernel),
        num_rows_(kernel - 1 + num_drafts),
        weights_(random_floats(static_cast<size_t>(channels * kernel), 1, 1.0F)),
        // NaN shows that a state is read that was not written.
        pages_(static_cast<size_t>(kNumPages * round_up(num_rows_ * channels, int64_t{16})),
               std::nanf("")) {}

  using Part = StatePart;

  // Returns the outputs, one row per token.
  std::vector<float> run(const std::vector<Part>& parts) {
    const StateBatch batch(parts);
    const int64_t num_tokens = batch.num_tokens();
    std::vector<float> bgx;
    for (const uint32_t seed : batch.seeds()) {
      bgx = append(std::move(bgx), random_floats(static_cast<size_t>(3 * channels_), seed, 1.0F));
    }
    std::vector<float> out(static_cast<size_t>(num_tokens * channels_));
    ShortConv conv;
    conv.bgx = {bgx.data(), DType::kF32, {num_tokens, 3 * channels_}};
    conv.w = weights_.data();
    conv.kernel = kernel_;
    conv.num_rows = num_rows_;
    conv.out = {out.data(), DType::kF32, {num_tokens, channels_}};
    conv.states = batch.states(pages_);
    ops_.short_conv(conv);
    return out;
  }

  int64_t channels() const { return channels_; }

 private:
  StateOps& ops_;
  int64_t channels_;
  int kernel_;
  int num_rows_;
  std::vector<float> weights_;
  std::vector<float> pages_;
};

// Rows [first, end) of an output.
std::vector<float> rows(const std::vector<float>& out, int64_t channels, int first, int end) {
  return {out.begin() + first * channels, out.begin() + end * channels};
}

struct ConvCase {
  int64_t channels;
  int kernel;
  int num_drafts;
};

class ShortConvTest : public ::testing::TestWithParam<ConvCase> {
 protected:
  ConvSteps steps(StateOps& ops) const {
    const ConvCase& one = GetParam();
    return {ops, one.channels, one.kernel, one.num_drafts};
  }

  ReferenceOps reference_;
  ThreadPool pool_{2};
  std::unique_ptr<Ops> cpu_ = make_cpu_ops(pool_, {});
};

TEST_P(ShortConvTest, EqualsTheDefinition) {
  ConvSteps expected = steps(reference_);
  ConvSteps got = steps(*cpu_->states());
  const std::vector<ConvSteps::Part> parts = {{0, 40, 1, kPages}, {0, 1, 2, {11}}};
  const std::vector<float> reference = expected.run(parts);
  const std::vector<float> computed = got.run(parts);
  ASSERT_EQ(computed.size(), reference.size());
  for (size_t i = 0; i < computed.size(); ++i) {
    EXPECT_NEAR(computed[i], reference[i], 2e-6 * (1 + std::abs(reference[i]))) << i;
  }
}

TEST_P(ShortConvTest, HasTheSameBitsHoweverTheTokensAreCut) {
  for (StateOps* const ops : {static_cast<StateOps*>(&reference_), cpu_->states()}) {
    const std::vector<float> whole = steps(*ops).run({{0, 60, 1, kPages}});
    for (const int first : {1, 2, 15, 16, 17, 31, 48, 59}) {
      ConvSteps parts = steps(*ops);
      std::vector<float> got = parts.run({{0, first, 1, kPages}});
      // Another sequence is computed beside it, and single tokens follow.
      const std::vector<float> beside = parts.run({{0, 5, 2, {12}}, {first, 60, 1, kPages}});
      got = append(got, rows(beside, parts.channels(), 5, 5 + 60 - first));
      EXPECT_EQ(got, whole) << first;
    }
    ConvSteps tokens = steps(*ops);
    std::vector<float> one_by_one;
    for (int p = 0; p < 60; ++p) {
      one_by_one = append(one_by_one, tokens.run({{p, p + 1, 1, kPages}}));
    }
    EXPECT_EQ(one_by_one, whole);
  }
}

TEST_P(ShortConvTest, BeginsAtAKeptStateAndLeavesItAsItIs) {
  for (StateOps* const ops : {static_cast<StateOps*>(&reference_), cpu_->states()}) {
    ConvSteps shared = steps(*ops);
    // Block 0 has no page, because no later step needs the state after it.
    const std::vector<float> whole = shared.run({{0, 60, 1, {0, 9, 0, 7}}});
    for (int round = 0; round < 2; ++round) {  // the first follower did not change the state
      const std::vector<float> got = shared.run({{32, 60, 1, {0, 9, 0, 5}}});
      EXPECT_EQ(got, rows(whole, shared.channels(), 32, 60));
    }
  }
}

TEST_P(ShortConvTest, ReplacesTheRowsOfDraftsThatWereNotAccepted) {
  const int num_drafts = GetParam().num_drafts;
  for (StateOps* const ops : {static_cast<StateOps*>(&reference_), cpu_->states()}) {
    const std::vector<float> whole = steps(*ops).run({{0, 60, 1, kPages}});
    ConvSteps drafted = steps(*ops);
    std::vector<float> got = drafted.run({{0, 13, 1, kPages}});
    for (int p = 13, round = 0; p < 60; ++round) {
      // The span has the newest token and its drafts, of which some are accepted.
      const int end = std::min(p + 1 + num_drafts, 60);
      const int right_end = std::min(p + 1 + round % (num_drafts + 1), end);
      ConvSteps::Part part = {p, end, 1, kPages};
      part.right_end = right_end;
      got = append(got, rows(drafted.run({part}), drafted.channels(), 0, right_end - p));
      p = right_end;
    }
    EXPECT_EQ(got, whole);
  }
}

TEST_P(ShortConvTest, WritesNoStateOfATokenThatIsNotKept) {
  for (StateOps* const ops : {static_cast<StateOps*>(&reference_), cpu_->states()}) {
    ConvSteps ended = steps(*ops);
    const std::vector<float> whole = ended.run({{0, 32, 1, kPages}});
    ended.run({{31, 33, 5, kPages, 0}});  // a sequence that has ended computes a step too many
    const std::vector<float> next = ended.run({{32, 34, 1, kPages}});
    EXPECT_EQ(next, rows(steps(*ops).run({{0, 34, 1, kPages}}), ended.channels(), 32, 34));
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ShortConvTest,
                         ::testing::Values(ConvCase{1, 3, 0}, ConvCase{64, 3, 0},
                                           ConvCase{150, 3, 4}, ConvCase{70, 2, 1},
                                           ConvCase{33, 4, 7}, ConvCase{8, 8, 15}));

}  // namespace
}  // namespace quire::testing
