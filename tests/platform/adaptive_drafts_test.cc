#include "platform/adaptive_drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace quire {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

constexpr int kNumDrafts = 4;

void observe(StepTimes& times, int num_rows, double seconds) {
  for (int i = 0; i < 8; ++i) times.observe(num_rows, seconds);
}

TEST(StepTimes, KnowsNothingAtFirst) {
  StepTimes times;
  EXPECT_FALSE(times.has_observed(4));
  EXPECT_EQ(times.at(4), 0);
  observe(times, 4, 1.0);
  EXPECT_TRUE(times.has_observed(4));
  EXPECT_FALSE(times.has_observed(5));
  EXPECT_EQ(times.at(2), 1.0);
  EXPECT_EQ(times.at(9), 1.0);
}

TEST(StepTimes, InterpolatesBetweenNeighborsAndContinuesTheirLine) {
  StepTimes times;
  observe(times, 300, 1.0);
  observe(times, 340, 2.0);
  EXPECT_THAT(times.at(310), DoubleNear(1.25, 1e-9));
  EXPECT_THAT(times.at(360), DoubleNear(2.5, 1e-9));
}

// Between 2 and 20 rows, the lines through 1 and 2 rows and through 20 and 24 rows are the bound.
TEST(StepTimes, IsOptimisticInAGap) {
  StepTimes times;
  observe(times, 1, 1.0);
  observe(times, 2, 1.1);
  EXPECT_THAT(times.at(5), DoubleNear(1.4, 1e-9));
  observe(times, 20, 4.0);
  observe(times, 24, 5.0);
  EXPECT_THAT(times.at(5), DoubleNear(1.4, 1e-9));
  EXPECT_THAT(times.at(19), DoubleNear(3.75, 1e-9));
}

TEST(StepTimes, NeverFallsWithTheNumberOfRows) {
  StepTimes times;
  observe(times, 4, 2.0);
  observe(times, 5, 1.0);
  observe(times, 8, 1.5);
  for (int rows = 4; rows < 8; ++rows) EXPECT_LE(times.at(rows), times.at(rows + 0.5)) << rows;
}

TEST(StepTimes, FollowsNewTimes) {
  StepTimes times;
  observe(times, 100, 1.0);
  for (int i = 0; i < 40; ++i) times.observe(103, 2.0);
  EXPECT_THAT(times.at(103), DoubleNear(2.0, 0.01));
}

TEST(AcceptanceRates, CountsAConfidenceInRelationToItsMean) {
  AcceptanceRates rates(1);
  for (int i = 0; i < 400; ++i) {
    const float confidence = i % 2 == 0 ? 0.3F : 0.1F;
    const std::vector<VerifiedSpan> step = {
        {.confidences = std::span(&confidence, 1), .num_accepted = i % 4 == 0 ? 1 : 0}};
    rates.observe(step);
  }
  EXPECT_THAT(rates.mean(0), DoubleNear(0.28, 0.06));
  EXPECT_THAT(rates.probability(0, 0.2) / rates.mean(0), DoubleNear(1.0, 0.05));
  EXPECT_GT(rates.probability(0, 0.3), 1.3 * rates.mean(0));
  EXPECT_LE(rates.probability(0, 1.0), 1.0);
}

// A machine of which a step with n rows takes step_seconds(n), and whose drafter takes
// draft_seconds(k, sequences). Draft i is accepted with probability acceptance[i] if those before
// it are.
struct Machine {
  std::function<double(int)> step_seconds;
  std::function<double(int, int)> draft_seconds;
  std::vector<double> acceptance;
};

class Simulation {
 public:
  Simulation(const Machine& machine, int num_seqs, bool by_confidence = true)
      : machine_(machine),
        drafts_(kNumDrafts, by_confidence),
        num_wanted_(static_cast<size_t>(num_seqs)),
        random_(7) {}

  // Returns the tokens per second of the steps.
  double run(int num_steps) {
    double num_tokens = 0;
    double seconds = 0;
    for (int i = 0; i < num_steps; ++i) run_step(num_tokens, seconds);
    return num_tokens / seconds;
  }

  void set_acceptance(std::vector<double> acceptance) {
    machine_.acceptance = std::move(acceptance);
  }
  int num_verified() const { return num_verified_; }  // in the last step

 private:
  void run_step(double& num_tokens, double& seconds) {
    const auto num_seqs = static_cast<int>(num_wanted_.size());
    const std::vector<float> confidences(kNumDrafts, 0.5F);
    std::vector<AdaptiveDrafts::Proposal> proposals;
    for (const int32_t wanted : num_wanted_) {
      proposals.push_back(
          {.confidences = std::span(confidences).first(static_cast<size_t>(wanted))});
    }
    drafts_.choose(proposals, num_seqs);
    num_verified_ = 0;
    for (const auto& proposal : proposals) num_verified_ += proposal.num_kept;
    const double step = noisy(machine_.step_seconds(num_seqs + num_verified_));
    std::vector<VerifiedSpan> spans;
    for (const auto& proposal : proposals) {
      spans.push_back(
          {.confidences = proposal.confidences.first(static_cast<size_t>(proposal.num_kept)),
           .num_accepted = accept(proposal.num_kept)});
      num_tokens += 1 + spans.back().num_accepted;
    }
    drafts_.observe_step(num_seqs + num_verified_, step, spans);
    std::ranges::fill(num_wanted_, kNumDrafts);
    drafts_.lower_wanted(num_wanted_);
    const int most = std::ranges::max(num_wanted_);
    const auto num_drafting = static_cast<int>(std::ranges::count(num_wanted_, most));
    const double draft = noisy(machine_.draft_seconds(most, num_drafting));
    drafts_.observe_proposal(most, num_drafting, draft);
    seconds += step + draft;
  }

  int accept(int num_drafts) {
    int num_accepted = 0;
    while (num_accepted < num_drafts &&
           uniform_(random_) < machine_.acceptance[static_cast<size_t>(num_accepted)]) {
      ++num_accepted;
    }
    return num_accepted;
  }

  double noisy(double seconds) { return seconds * (0.97 + 0.06 * uniform_(random_)); }

  Machine machine_;
  AdaptiveDrafts drafts_;
  std::vector<int32_t> num_wanted_;
  int num_verified_ = 0;
  std::mt19937 random_;
  std::uniform_real_distribution<double> uniform_;
};

// Tokens per second with k drafts in every step.
double rate_of_fixed(const Machine& machine, int num_seqs, int k) {
  double survival = 1;
  double num_tokens = 1;
  for (int i = 0; i < k; ++i) {
    survival *= machine.acceptance[static_cast<size_t>(i)];
    num_tokens += survival;
  }
  return num_seqs * num_tokens /
         (machine.step_seconds(num_seqs * (1 + k)) + machine.draft_seconds(k, num_seqs));
}

double free_drafts(int /*k*/, int /*num_seqs*/) {
  return 0;
}

// Waits for the weights up to 64 rows, then computes.
double roofline_seconds(int num_rows) {
  return 4e-3 + 1e-5 * num_rows + 6e-5 * std::max(num_rows - 64, 0);
}

// A head that computes one layer of 32 for each draft, and for each new token at least once.
double head_seconds(int k, int num_seqs) {
  return (1 + 0.6 * k) * roofline_seconds(num_seqs) / 40;
}

TEST(AdaptiveDrafts, VerifiesAllWhereRowsAreFree) {
  Simulation simulation({[](int) { return 1.0; }, free_drafts, {0.5, 0.5, 0.5, 0.5}}, 3);
  simulation.run(100);
  EXPECT_GE(simulation.num_verified(), 3 * kNumDrafts - 2);
}

TEST(AdaptiveDrafts, VerifiesNoneWhereRowsCostAsMuchAsSteps) {
  Simulation simulation({[](int rows) { return 1.0 * rows; }, free_drafts, {0.5, 0.5, 0.5, 0.5}},
                        3);
  simulation.run(100);
  EXPECT_EQ(simulation.num_verified(), 0);
}

TEST(AdaptiveDrafts, KeepsTheDraftsOfWhichTheDrafterIsSure) {
  AdaptiveDrafts drafts(2, true);
  for (int rows = 1; rows <= 8; ++rows) {
    for (int i = 0; i < 4; ++i) drafts.observe_step(rows, 1.0 + 0.3 * rows, {});
  }
  const std::vector<float> sure = {0.9F, 0.9F};
  const std::vector<float> unsure = {0.2F, 0.2F};
  const std::vector<VerifiedSpan> spans = {{sure, 2}, {unsure, 0}};
  for (int i = 0; i < 100; ++i) drafts.observe_step(6, 2.8, spans);
  std::vector<AdaptiveDrafts::Proposal> proposals = {{.confidences = unsure},
                                                     {.confidences = sure}};
  drafts.choose(proposals, 2);
  EXPECT_EQ(proposals[0].num_kept, 0);
  EXPECT_EQ(proposals[1].num_kept, 2);
}

TEST(AdaptiveDrafts, ReturnsWhenDraftsBecomeBetter) {
  Simulation simulation({roofline_seconds, head_seconds, {0.02, 0.02, 0.02, 0.02}}, 4);
  simulation.run(500);
  const double slow = simulation.run(64);
  simulation.set_acceptance({0.9, 0.9, 0.9, 0.9});
  simulation.run(1500);
  EXPECT_GT(simulation.run(64), 2.5 * slow);
}

TEST(AdaptiveDrafts, AsksForNoProposalsThatCostMoreThanTheyBring) {
  const auto slow_drafter = [](int k, int) { return 1.0 * k; };
  Simulation simulation({[](int) { return 1.0; }, slow_drafter, {0.5, 0.5, 0.5, 0.5}}, 1);
  simulation.run(100);
  EXPECT_EQ(simulation.num_verified(), 0);
}

// A layer for drafts in a small model with many tokens: a draft reads lm_head, a third of the
// weights. Beside the probes, such a drafter costs its reading of new tokens alone.
TEST(AdaptiveDrafts, ALayerThatIsNeverRightCostsLittle) {
  const Machine machine = {[](int rows) { return 1.0 + 0.15 * (rows - 1); },
                           [](int k, int /*num_seqs*/) { return 0.01 + 0.36 * k; },
                           std::vector<double>(kNumDrafts, 0.0)};
  Simulation wrong(machine, 1);
  wrong.run(300);
  EXPECT_GE(wrong.run(4000), 0.97 / machine.step_seconds(1));
  Simulation right({machine.step_seconds, machine.draft_seconds, {0.9, 0.9, 0.9, 0.9}}, 1);
  right.run(300);
  EXPECT_GE(right.run(4000), 1.2 / machine.step_seconds(1));
}

// Before the first step, and after a change of the batch, no step's time is known.
TEST(AdaptiveDrafts, MeasuresTheStepWithoutDraftsFirst) {
  AdaptiveDrafts drafts(2, true);
  const std::vector<float> sure = {1.0F, 1.0F};
  std::vector<AdaptiveDrafts::Proposal> proposals = {{.confidences = sure}};
  std::vector<int> kept;
  for (int i = 0; i < 4; ++i) {
    drafts.choose(proposals, 1);
    kept.push_back(proposals[0].num_kept);
    drafts.observe_step(1 + kept.back(), 1.0, {});
  }
  EXPECT_THAT(kept, ElementsAre(0, 0, 2, 2));
}

TEST(AdaptiveDrafts, ProposesAllBeforeAnythingIsKnown) {
  std::vector<int32_t> wanted = {4, 0, 3};
  AdaptiveDrafts(4, true).lower_wanted(wanted);
  EXPECT_THAT(wanted, ElementsAre(4, 0, 3));
}

// Sampled drafts are kept or dropped by their number alone.
TEST(AdaptiveDrafts, DropsNoSampledDraftForTheConfidenceOfAnother) {
  AdaptiveDrafts drafts(2, false);
  for (int rows = 1; rows <= 8; ++rows) {
    for (int i = 0; i < 4; ++i) drafts.observe_step(rows, 1.0 + 0.3 * rows, {});
  }
  const std::vector<float> sure = {0.9F, 0.9F};
  const std::vector<float> unsure = {0.9F, 0.0F};
  const std::vector<VerifiedSpan> spans = {{sure, 0}, {sure, 0}};
  for (int i = 0; i < 100; ++i) drafts.observe_step(6, 2.8, spans);
  std::vector<AdaptiveDrafts::Proposal> proposals = {{.confidences = unsure},
                                                     {.confidences = sure}};
  for (int step = 1; step <= 4 * AdaptiveDrafts::kProbePeriod; ++step) {
    drafts.choose(proposals, 2);
    EXPECT_EQ(proposals[0].num_kept, proposals[1].num_kept);
    if (step % AdaptiveDrafts::kProbePeriod == 0) continue;
    EXPECT_EQ(proposals[0].num_kept, 2);
  }
}

// The number of sequences, the acceptance of each draft, and by_confidence.
class AdaptiveRates : public ::testing::TestWithParam<std::tuple<int, double, bool>> {};

// On a simulated machine whose times vary by 6 %. Where 64 rows are the best choice, between the
// two sides of the roofline, the distance from the best is the largest.
TEST_P(AdaptiveRates, AreNearTheBestOfAllNumbersOfDrafts) {
  const auto [num_seqs, acceptance, by_confidence] = GetParam();
  const Machine machine = {roofline_seconds, head_seconds,
                           std::vector<double>(kNumDrafts, acceptance)};
  Simulation simulation(machine, num_seqs, by_confidence);
  simulation.run(300);
  const double rate = simulation.run(256 + 20000 / num_seqs);
  double best = 0;
  for (int k = 0; k <= kNumDrafts; ++k) best = std::max(best, rate_of_fixed(machine, num_seqs, k));
  EXPECT_GE(rate, 0.95 * best);
  EXPECT_GE(rate, 0.99 * rate_of_fixed(machine, num_seqs, 0));
}

INSTANTIATE_TEST_SUITE_P(Concurrency, AdaptiveRates,
                         ::testing::Combine(::testing::Values(1, 2, 8, 16, 32, 64, 128, 256, 512),
                                            ::testing::Values(0.05, 0.3, 0.5, 0.7, 0.9),
                                            ::testing::Bool()));

}  // namespace
}  // namespace quire
