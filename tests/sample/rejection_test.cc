// Verified drafts keep the target's distribution: chi-squared tests of the joint distribution of
// five tokens, which take several steps.
#include "sample/rejection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "sample/chi_square.h"

namespace quire {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr int kVocab = 3;
constexpr int kTokens = 5;  // of one sequence
constexpr size_t kOutputs = 243;
constexpr int kDraws = 200000;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Probs = std::array<float, kVocab>;
using Chain = std::array<Probs, kVocab>;  // by the last token

// The two models disagree in every context, each in another way.
constexpr Chain kTarget = {{{0.2F, 0.3F, 0.5F}, {0.45F, 0.25F, 0.3F}, {0.25F, 0.5F, 0.25F}}};
constexpr Chain kDrafter = {{{0.5F, 0.3F, 0.2F}, {0.2F, 0.2F, 0.6F}, {0.3F, 0.3F, 0.4F}}};

TokenDistribution distribution(const Probs& probs) {
  TokenDistribution made;
  for (int32_t id = 0; id < kVocab; ++id) {
    const double weight = 4 * static_cast<double>(probs[static_cast<size_t>(id)]);
    if (weight > 0) made.candidates.push_back({weight, id});
    made.total += weight;
  }
  return made;
}

int32_t draw(const Probs& probs, const TokenNoise& noise) {
  return sample_gumbel_max(distribution(probs).candidates, noise);
}

// The distributions of a chain by the last token, made once because the tests draw from them often.
using Distributions = std::array<TokenDistribution, kVocab>;

Distributions distributions(const Chain& chain) {
  return {distribution(chain[0]), distribution(chain[1]), distribution(chain[2])};
}

// One sequence with its seed. Drafts are sampled from kDrafter, or are its most likely tokens.
struct Sequence {
  uint64_t seed = 0;
  std::vector<int32_t> tokens = {0};
  size_t num_accepted = 0;  // in the last step
};

struct Drafting {
  RejectionMethod method = RejectionMethod::kStandard;
  int num_drafts = 1;
  bool samples_drafts = true;
  // The noise of the drafter; by default DraftNoise's noise for drafts.
  std::function<TokenNoise(const DraftNoise&, uint64_t seed, uint64_t position, size_t draft_idx)>
      draft_noise = [](const DraftNoise& noise, uint64_t, uint64_t, size_t draft_idx) {
        return noise.draft(draft_idx);
      };
};

void step(const Drafting& drafting, Sequence& sequence) {
  static const Distributions targets = distributions(kTarget);
  static const Distributions drafters = distributions(kDrafter);
  const uint64_t position = sequence.tokens.size();
  const DraftNoise noise(sequence.seed, position);
  std::vector<int32_t> context = {sequence.tokens.back()};  // the last token, then the drafts
  std::vector<Draft> drafts;
  for (size_t i = 0; i < static_cast<size_t>(drafting.num_drafts); ++i) {
    const auto last = static_cast<size_t>(context.back());
    const Probs& probs = kDrafter[last];
    if (drafting.samples_drafts) {
      const TokenNoise token_noise = drafting.draft_noise(noise, sequence.seed, position, i);
      context.push_back(sample_gumbel_max(drafters[last].candidates, token_noise));
      drafts.push_back({.token_id = context.back(), .probs = probs});
    } else {
      context.push_back(static_cast<int32_t>(std::ranges::max_element(probs) - probs.begin()));
      drafts.push_back({.token_id = context.back()});
    }
  }
  const TargetAt target_at = [&](size_t i) { return &targets[static_cast<size_t>(context[i])]; };
  const VerifiedDrafts verified = verify_drafts(drafting.method, drafts, target_at, noise);
  sequence.num_accepted = verified.num_accepted;
  sequence.tokens.insert(sequence.tokens.end(), context.begin() + 1,
                         context.begin() + 1 + static_cast<std::ptrdiff_t>(verified.num_accepted));
  sequence.tokens.push_back(verified.next_token);
}

// The number of the first `count` tokens after the first one, in base kVocab.
size_t number_of(const std::vector<int32_t>& tokens, int count) {
  size_t number = 0;
  for (int i = 1; i <= count; ++i) {
    number = number * kVocab + static_cast<size_t>(tokens[static_cast<size_t>(i)]);
  }
  return number;
}

double expected_share(size_t number, int count) {
  std::vector<size_t> tokens;
  for (int i = 0; i < count; ++i, number /= kVocab) tokens.insert(tokens.begin(), number % kVocab);
  double share = 1;
  size_t last = 0;
  for (const size_t token : tokens) {
    share *= static_cast<double>(kTarget[last][token]);
    last = token;
  }
  return share;
}

struct Measured {
  double chi = 0;       // of the tokens of each sequence
  double pair_chi = 0;  // of the first two tokens of neighbors in a batch; 0 in a batch of 1
};

// The sequences of a batch take their steps in turn. Seeds are fixed, so the result never changes.
Measured measure(const Drafting& drafting, int batch_size) {
  std::vector<int> counts(kOutputs);
  std::vector<int> pairs(81);
  for (int i = 0; i < kDraws; i += batch_size) {
    std::vector<Sequence> batch(static_cast<size_t>(batch_size));
    for (size_t row = 0; row < batch.size(); ++row)
      batch[row].seed = static_cast<uint64_t>(i) + row;
    for (int num_steps = 0; num_steps < kTokens; ++num_steps) {
      for (Sequence& sequence : batch) {
        if (sequence.tokens.size() <= kTokens) step(drafting, sequence);
      }
    }
    for (const Sequence& sequence : batch) ++counts[number_of(sequence.tokens, kTokens)];
    for (size_t row = 0; row + 1 < batch.size(); row += 2) {
      ++pairs[9 * number_of(batch[row].tokens, 2) + number_of(batch[row + 1].tokens, 2)];
    }
  }
  Measured measured;
  measured.chi = chi_square(counts, [](size_t i) { return expected_share(i, kTokens); });
  if (batch_size == 1) return measured;
  measured.pair_chi = chi_square(
      pairs, [](size_t i) { return expected_share(i / 9, 2) * expected_share(i % 9, 2); });
  return measured;
}

constexpr RejectionMethod kMethods[] = {RejectionMethod::kStandard, RejectionMethod::kBlock};

class VerifyDraftsTest : public ::testing::TestWithParam<std::tuple<RejectionMethod, int>> {};

TEST_P(VerifyDraftsTest, KeepsTheTargetsDistribution) {
  const auto [method, num_drafts] = GetParam();
  const Measured sampled = measure({.method = method, .num_drafts = num_drafts}, 1);
  EXPECT_LT(sampled.chi, bound(kOutputs));
  const Measured certain =
      measure({.method = method, .num_drafts = num_drafts, .samples_drafts = false}, 1);
  EXPECT_LT(certain.chi, bound(kOutputs));
}

TEST_P(VerifyDraftsTest, KeepsItInBatches) {
  const auto [method, num_drafts] = GetParam();
  for (const int batch_size : {2, 5}) {
    const Measured measured = measure({.method = method, .num_drafts = num_drafts}, batch_size);
    EXPECT_LT(measured.chi, bound(kOutputs)) << "batches of " << batch_size;
    EXPECT_LT(measured.pair_chi, bound(81)) << "batches of " << batch_size;
  }
}

INSTANTIATE_TEST_SUITE_P(MethodAndDrafts, VerifyDraftsTest,
                         ::testing::Combine(::testing::ValuesIn(kMethods),
                                            ::testing::Values(1, 2, 4)),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param) == RejectionMethod::kBlock
                                                  ? "block_"
                                                  : "standard_") +
                                  std::to_string(std::get<1>(param.param));
                         });

// The tests above can fail: each of these mistakes changes the distribution visibly.
TEST(VerifyDrafts, ASharedNoiseStreamIsDetected) {
  for (const RejectionMethod method : kMethods) {
    for (const NoiseStream stream : {NoiseStream::kAcceptance, NoiseStream::kResidual}) {
      Drafting shared = {.method = method, .num_drafts = 2};
      shared.draft_noise = [stream](const DraftNoise&, uint64_t seed, uint64_t position, size_t i) {
        return TokenNoise(seed, position, stream, static_cast<uint32_t>(i));
      };
      EXPECT_GT(measure(shared, 1).chi, 1.5 * bound(kOutputs));
    }
  }
}

// A step of block verification uses the noise of drafts that it rejects, so that a draft must not
// be sampled again by the noise of its own position.
TEST(VerifyDrafts, NoiseOfTheDraftsOwnPositionIsDetected) {
  Drafting own = {.method = RejectionMethod::kBlock, .num_drafts = 4};
  own.draft_noise = [](const DraftNoise&, uint64_t seed, uint64_t position, size_t draft_idx) {
    return TokenNoise(seed, position + draft_idx, NoiseStream::kDraft);
  };
  EXPECT_GT(measure(own, 1).chi, bound(kOutputs));
}

// ---- Mean accepted lengths

double ratio(size_t last, size_t token) {
  return static_cast<double>(kTarget[last][token]) / static_cast<double>(kDrafter[last][token]);
}

// The expected number of accepted drafts after a context. `survival` is the chance that the drafts
// so far are accepted, which block verification bounds for the whole prefix, and standard rejection
// sampling for each draft.
double expected_accepted(RejectionMethod method, size_t last, double survival, int num_drafts) {
  if (num_drafts == 0) return 0;
  double sum = 0;
  for (size_t token = 0; token < kVocab; ++token) {
    const double next = method == RejectionMethod::kBlock
                            ? std::min(1.0, survival * ratio(last, token))
                            : survival * std::min(1.0, ratio(last, token));
    sum += static_cast<double>(kDrafter[last][token]) *
           (next + expected_accepted(method, token, next, num_drafts - 1));
  }
  return sum;
}

double measured_accepted(RejectionMethod method, int num_drafts) {
  double sum = 0;
  for (int i = 0; i < kDraws; ++i) {
    Sequence sequence = {.seed = static_cast<uint64_t>(i)};
    step({.method = method, .num_drafts = num_drafts}, sequence);
    sum += static_cast<double>(sequence.num_accepted);
  }
  return sum / kDraws;
}

TEST(VerifyDrafts, BlocksAcceptAtLeastAsManyAsStandard) {
  for (const int num_drafts : {1, 2, 4}) {
    const double standard = measured_accepted(RejectionMethod::kStandard, num_drafts);
    const double block = measured_accepted(RejectionMethod::kBlock, num_drafts);
    // The standard deviation of the mean is below 0.004.
    EXPECT_NEAR(standard, expected_accepted(RejectionMethod::kStandard, 0, 1, num_drafts), 0.016);
    EXPECT_NEAR(block, expected_accepted(RejectionMethod::kBlock, 0, 1, num_drafts), 0.016);
    if (num_drafts == 1) {
      EXPECT_EQ(block, standard);
    } else {
      EXPECT_GT(block, standard + 0.016);
    }
  }
}

// ---- Single decisions

// Verifies drafts against one target distribution per position; later positions have none.
VerifiedDrafts verify(RejectionMethod method, const std::vector<Draft>& drafts,
                      const std::vector<Probs>& targets, const DraftNoise& noise) {
  TokenDistribution target;
  return verify_drafts(
      method, drafts,
      [&](size_t i) -> const TokenDistribution* {
        if (i >= targets.size()) return nullptr;
        target = distribution(targets[i]);
        return &target;
      },
      noise);
}

TEST(VerifyDrafts, EqualDistributionsAcceptEverything) {
  const Probs probs = {0.2F, 0.7F, 0.1F};
  for (const RejectionMethod method : kMethods) {
    for (uint64_t seed = 0; seed < 2000; ++seed) {
      const DraftNoise noise(seed, 9);
      const std::vector<Draft> drafts = {{draw(probs, noise.draft(0)), probs},
                                         {draw(probs, noise.draft(1)), probs}};
      const VerifiedDrafts verified = verify(method, drafts, {probs, probs, probs}, noise);
      ASSERT_EQ(verified.num_accepted, 2U);
      ASSERT_EQ(verified.next_token, draw(probs, TokenNoise(seed, 11)));
    }
  }
}

TEST(VerifyDrafts, ATargetOfOneTokenIsAnExactMatch) {
  const Probs one = {0, 1, 0};
  const Probs probs = {0.3F, 0.3F, 0.4F};
  for (const RejectionMethod method : kMethods) {
    for (const bool is_certain : {false, true}) {
      const auto draft = [&](int32_t id) {
        return is_certain ? Draft{.token_id = id} : Draft{.token_id = id, .probs = probs};
      };
      for (uint64_t seed = 0; seed < 500; ++seed) {
        const DraftNoise noise(seed, 1);
        const auto right = verify(method, {draft(1), draft(1)}, {one, one, one}, noise);
        ASSERT_EQ(right.num_accepted, 2U);
        ASSERT_EQ(right.next_token, 1);
        const auto wrong =
            verify(method, {draft(1), draft(2), draft(1)}, {one, one, one, one}, noise);
        ASSERT_EQ(wrong.num_accepted, 1U);
        ASSERT_EQ(wrong.next_token, 1);
      }
    }
  }
}

// A broken row gives the target's token by the noise of a run without drafts.
TEST(VerifyDrafts, ABrokenDraftDistributionLeavesTheTargetsToken) {
  const Probs good = {0.2F, 0.7F, 0.1F}, target = {0.3F, 0.3F, 0.4F};
  const Probs broken[] = {{kNan, 0.5F, 0.5F}, {0.5F, 0.5F, kNan},  {0.5F, 1.5F, -1.F},
                          {0.5F, 0, 0.5F},    {0.1F, 0.1F, 0.1F},  {0, 1.5F, 0},
                          {kNan, kNan, kNan}, {0.3F, 0.7F, 0.01F}, {0.5F, -0.5F, 1.F}};
  for (const RejectionMethod method : kMethods) {
    for (const Probs& probs : broken) {
      for (uint64_t seed = 0; seed < 300; ++seed) {
        const DraftNoise noise(seed, 4);
        const auto first = verify(method, {{1, probs}, {1, good}}, {target, target}, noise);
        ASSERT_EQ(first.num_accepted, 0U);
        ASSERT_EQ(first.next_token, draw(target, TokenNoise(seed, 4)));
        // The accepted draft before it stays accepted.
        const auto second = verify(method, {{1, good}, {1, probs}}, {good, target}, noise);
        ASSERT_EQ(second.num_accepted, 1U);
        ASSERT_EQ(second.next_token, draw(target, TokenNoise(seed, 5)));
      }
    }
    const DraftNoise noise(1, 4);
    EXPECT_EQ(verify(method, {{-1, good}}, {target}, noise).num_accepted, 0U);
    EXPECT_EQ(verify(method, {{kVocab, good}}, {target}, noise).num_accepted, 0U);
  }
}

TEST(VerifyDrafts, DraftsBehindAForbiddenOneAreNotLookedAt) {
  const Probs even = {0.5F, 0.5F, 0}, probs = {0.3F, 0.3F, 0.4F};
  for (const RejectionMethod method : kMethods) {
    for (uint64_t seed = 0; seed < 500; ++seed) {
      // The position after the forbidden draft has no target distribution.
      const VerifiedDrafts verified = verify(method, {{2, probs}, {1, probs}}, {even}, {seed, 1});
      ASSERT_EQ(verified.num_accepted, 0U);
      ASSERT_THAT(verified.next_token, ::testing::AnyOf(0, 1));
    }
  }
}

TEST(VerifyDrafts, AcceptedDraftsStayWhereTheTargetsDistributionEnds) {
  const Probs probs = {0.2F, 0.7F, 0.1F};
  for (const RejectionMethod method : kMethods) {
    const VerifiedDrafts verified = verify(method, {{1, probs}, {1, probs}}, {probs}, {3, 1});
    EXPECT_EQ(verified.num_accepted, 1U);
    EXPECT_EQ(verified.next_token, -1);
    EXPECT_EQ(verify(method, {}, {}, {3, 1}).next_token, -1);
  }
}

TEST(SyntheticAcceptance, FollowsTheRates) {
  const std::vector<double> rates = {0.8, 0.5, 0.5, 0};
  std::array<int, 5> counts = {};
  for (int i = 0; i < kDraws; ++i) {
    const DraftNoise noise(static_cast<uint64_t>(i), 7);
    ++counts[count_synthetic(rates, noise.synthetic_acceptance())];
  }
  EXPECT_NEAR(counts[0], 0.2 * kDraws, 900) << "five standard deviations";
  EXPECT_NEAR(counts[1], 0.3 * kDraws, 1100);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[3], 0.5 * kDraws, 1200);
  EXPECT_EQ(counts[4], 0);
}

TEST(SyntheticAcceptance, RatesOfALength) {
  EXPECT_THAT(synthetic_rates(1, 3), Each(0.0));
  EXPECT_THAT(synthetic_rates(4, 3), Each(1.0));
  EXPECT_THAT(synthetic_rates(3.25, 4), ElementsAre(1.0, 1.0, 0.25, 0.0));
}

TEST(KeepAllowed, RestrictsADistributionToAMask) {
  std::array<float, 40> probs = {};
  probs[1] = 0.2F, probs[2] = 0.5F, probs[33] = 0.2F, probs[39] = 0.1F;
  std::array<float, 40> broken = probs;
  broken[3] = kNan;
  keep_allowed(std::array<uint32_t, 2>{1U << 1, 1U << 1}, probs);
  EXPECT_FLOAT_EQ(probs[1], 0.5F);
  EXPECT_FLOAT_EQ(probs[33], 0.5F);
  EXPECT_EQ(std::ranges::count(probs, 0.F), 38);
  // A short mask forbids the tokens beyond it.
  keep_allowed(std::array<uint32_t, 1>{~0U}, probs);
  EXPECT_FLOAT_EQ(probs[1], 1.F);
  // A broken distribution must not look like a whole one afterwards.
  keep_allowed(std::array<uint32_t, 1>{1U << 2}, broken);
  EXPECT_TRUE(std::isnan(broken[3]));
  EXPECT_EQ(broken[2], 0.5F);
}

}  // namespace
}  // namespace quire
