// Compares gated delta nets with their definition in double, however the tokens are divided among
// steps, and whichever drafts are accepted.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/numbers.h"
#include "ops/state_ops.h"
#include "ops_fixture.h"
#include "support/reference_ops.h"
#include "support/state_steps.h"

namespace quire::testing {
namespace {

// The states of some sequences, and the steps over them.
class DeltaSteps {
 public:
  DeltaSteps(StateOps& ops, const DeltaNetShape& shape, int num_drafts)
      : ops_(ops),
        shape_(shape),
        num_drafts_(num_drafts),
        conv_(numbers(shape.num_channels() * shape.kernel, 1, 0.5F)),
        a_log_(numbers(shape.num_v_heads, 2, 0.5F)),
        dt_bias_(numbers(shape.num_v_heads, 3, 1.0F)),
        norm_(numbers(shape.v_dim, 4, 1.0F)),
        pages_(static_cast<size_t>(kNumPages *
                                   round_up(DeltaNetPage(shape, num_drafts).size, int64_t{16})),
               std::nanf("")) {}

  using Part = StatePart;

  // Returns the outputs, one row per token. Parts with drafts come first.
  std::vector<float> run(const std::vector<Part>& parts) {
    const StateBatch batch(parts);
    const int64_t num_tokens = batch.num_tokens();
    std::vector<float> x;
    std::vector<float> ba;
    for (const uint32_t seed : batch.seeds()) {
      x = append(std::move(x), numbers(shape_.num_channels() + width(), seed, 1.0F));
      ba = append(std::move(ba), numbers(2 * shape_.num_v_heads, seed + 600'000, 2.0F));
    }
    std::vector<float> out(static_cast<size_t>(num_tokens * width()));
    DeltaNet net;
    net.shape = shape_;
    net.x = {x.data(), DType::kF32, {num_tokens, shape_.num_channels() + width()}};
    net.ba = {ba.data(), DType::kF32, {num_tokens, 2 * shape_.num_v_heads}};
    net.conv = conv_.data();
    net.a_log = a_log_.data();
    net.dt_bias = dt_bias_.data();
    net.norm = norm_.data();
    net.num_drafts = num_drafts_;
    net.out = {out.data(), DType::kF32, {num_tokens, width()}};
    net.states = batch.states(pages_);
    ops_.delta_net(net);
    return out;
  }

  int64_t width() const { return shape_.width(); }
  // Rows [first, end) of an output.
  std::vector<float> rows(const std::vector<float>& out, int first, int end) const {
    return {out.begin() + first * width(), out.begin() + end * width()};
  }

 private:
  static std::vector<float> numbers(int64_t count, uint32_t seed, float scale) {
    return random_floats(static_cast<size_t>(count), seed, scale);
  }

  StateOps& ops_;
  DeltaNetShape shape_;
  int num_drafts_;
  std::vector<float> conv_;
  std::vector<float> a_log_;
  std::vector<float> dt_bias_;
  std::vector<float> norm_;
  std::vector<float> pages_;  // NaN shows that a state is read that was not written
};

void expect_near(const std::vector<float>& got, const std::vector<float>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], expected[i], 1e-4 * (1 + std::abs(expected[i]))) << i;
  }
}

class DeltaNetTest : public ::testing::TestWithParam<DeltaNetShape> {
 protected:
  DeltaSteps cpu(int num_drafts = 0) { return {*cpu_->states(), GetParam(), num_drafts}; }
  DeltaSteps reference() { return {reference_, GetParam(), 0}; }

  ReferenceOps reference_;
  ThreadPool pool_{2};
  std::unique_ptr<Ops> cpu_ = make_cpu_ops(pool_, {});
};

TEST_P(DeltaNetTest, EqualsTheDefinition) {
  const std::vector<DeltaSteps::Part> parts = {{0, 40, 1, kPages}, {0, 1, 2, {11}}};
  DeltaSteps expected = reference();
  DeltaSteps got = cpu();
  expect_near(got.run(parts), expected.run(parts));
  const std::vector<DeltaSteps::Part> next = {{40, 60, 1, kPages}, {1, 2, 2, {11}}};
  expect_near(got.run(next), expected.run(next));
}

TEST_P(DeltaNetTest, HasTheSameBitsHoweverTheTokensAreCut) {
  const std::vector<float> whole = cpu().run({{0, 60, 1, kPages}});
  for (const int num_drafts : {0, 3}) {
    for (const int first : {1, 2, 15, 16, 17, 31, 48, 59}) {
      DeltaSteps parts = cpu(num_drafts);
      std::vector<float> got = parts.run({{0, first, 1, kPages}});
      // Another sequence is computed beside it.
      const std::vector<float> beside = parts.run({{0, 5, 2, {12}}, {first, 60, 1, kPages}});
      got = append(got, parts.rows(beside, 5, 5 + 60 - first));
      EXPECT_EQ(got, whole) << first;
    }
    DeltaSteps tokens = cpu(num_drafts);
    std::vector<float> one_by_one;
    for (int p = 0; p < 60; ++p) {
      one_by_one = append(one_by_one, tokens.run({{p, p + 1, 1, kPages}}));
    }
    EXPECT_EQ(one_by_one, whole);
  }
}

TEST_P(DeltaNetTest, BeginsAtAKeptStateAndLeavesItAsItIs) {
  DeltaSteps shared = cpu();
  // Block 0 has no page, because no later step needs the state after it.
  const std::vector<float> whole = shared.run({{0, 60, 1, {0, 9, 0, 7}}});
  for (int round = 0; round < 2; ++round) {  // the first follower did not change the state
    const std::vector<float> got = shared.run({{32, 60, 1, {0, 9, 0, 5}}});
    EXPECT_EQ(got, shared.rows(whole, 32, 60));
  }
}

TEST_P(DeltaNetTest, DraftsThatAreNotAcceptedLeaveNoTrace) {
  const std::vector<float> whole = cpu().run({{0, 60, 1, kPages}});
  for (const int num_drafts : {1, 3, 7, 15}) {
    DeltaSteps drafted = cpu(num_drafts);
    std::vector<float> got = drafted.run({{0, 13, 1, kPages}});
    for (int p = 13, round = 0; p < 60; ++round) {
      // The span has the newest token and its drafts, of which some are accepted.
      const int end = std::min(p + 1 + num_drafts, 60);
      const int right_end = std::min(p + 1 + round % (num_drafts + 1), end);
      DeltaSteps::Part part = {p, end, 1, kPages};
      part.right_end = right_end;
      part.decodes = true;
      got = append(got, drafted.rows(drafted.run({part}), 0, right_end - p));
      p = right_end;
    }
    EXPECT_EQ(got, whole) << num_drafts;
    // The states at the ends of blocks serve other sequences.
    const std::vector<float> other = drafted.run({{48, 60, 1, {0, 0, 4, 20}}});
    EXPECT_EQ(other, drafted.rows(whole, 48, 60)) << num_drafts;
  }
}

TEST_P(DeltaNetTest, WritesNoStateOfATokenThatIsNotKept) {
  DeltaSteps ended = cpu(2);
  ended.run({{0, 32, 1, kPages}});
  DeltaSteps::Part beyond = {31, 33, 5, kPages, 0};
  beyond.decodes = true;
  ended.run({beyond});  // a sequence that has ended computes a step too many
  const std::vector<float> next = ended.run({{32, 34, 1, kPages}});
  EXPECT_EQ(next, ended.rows(cpu().run({{0, 34, 1, kPages}}), 32, 34));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DeltaNetTest,
    ::testing::Values(DeltaNetShape{1, 1, 2, 1, 2}, DeltaNetShape{2, 4, 8, 12, 4},
                      DeltaNetShape{3, 3, 16, 16, 4}, DeltaNetShape{1, 4, 64, 32, 3},
                      DeltaNetShape{2, 4, 128, 128, 4}, DeltaNetShape{2, 6, 8, 12, 4, true},
                      DeltaNetShape{3, 6, 128, 128, 4, true}));

}  // namespace
}  // namespace quire::testing
