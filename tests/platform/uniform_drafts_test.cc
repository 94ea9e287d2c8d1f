#include "platform/uniform_drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <random>

namespace quire {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

// A machine of which a step with n token rows takes step_seconds(n), and whose drafter takes
// draft_seconds(k, sequences) to propose k drafts for each.
struct Machine {
  std::function<double(int)> step_seconds;
  std::function<double(int, int)> draft_seconds;
};

// An 8B model on a large GPU: it waits for the weights up to about 170 rows, then computes.
double roofline_seconds(int num_rows) {
  return std::max(4e-3, 2.3e-5 * num_rows) + 2e-6 * num_rows;
}

// A smaller GPU without such a flat part.
double linear_seconds(int num_rows) {
  return 1e-3 + 2e-5 * num_rows;
}

double lookup_seconds(int k, int /*num_seqs*/) {
  return k == 0 ? 0 : 2e-5;
}

// One layer of 32 and the output layer per draft. Without drafts the layer computes the step's
// tokens.
double head_seconds(int k, int num_seqs) {
  return (1 + 3 * k) * roofline_seconds(num_seqs) / 40;
}

// All drafts in one pass of six layers.
double block_seconds(int k, int num_seqs) {
  return k == 0 ? 0 : roofline_seconds(num_seqs * (1 + k)) / 6;
}

// Times as they would be measured at start, with an error of up to 1 %.
DraftCosts measured_costs(const Machine& machine, const std::vector<int>& num_drafts) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> error(0.99, 1.01);
  DraftCosts costs = {
      .batch_sizes = {}, .num_drafts = num_drafts, .verify_seconds = {}, .propose_seconds = {}};
  for (const int num_seqs : {1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}) {
    costs.batch_sizes.push_back(num_seqs);
    for (const int k : num_drafts) {
      costs.verify_seconds.push_back(machine.step_seconds(num_seqs * (1 + k)) * error(random));
      costs.propose_seconds.push_back(machine.draft_seconds(k, num_seqs) * error(random));
    }
  }
  return costs;
}

// The probability of each draft, if those before it are accepted, with which k drafts give this
// mean accepted length.
double acceptance_for(double length, int k) {
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    double survival = 1;
    double mean = 1;
    for (int draft = 0; draft < k; ++draft) mean += survival *= middle;
    (mean < length ? low : high) = middle;
  }
  return high;
}

// Runs steps as the engine does: two are in flight, so the results of a step arrive before the
// next but one is planned.
class Simulation {
 public:
  Simulation(const Machine& machine, const std::vector<int>& num_drafts, int num_seqs)
      : machine_(machine),
        most_(num_drafts.back()),
        num_seqs_(num_seqs),
        drafts_(measured_costs(machine, num_drafts)) {}

  // Returns the tokens per second of the steps.
  double run(int num_steps) {
    double num_tokens = 0;
    double seconds = 0;
    for (int i = 0; i < num_steps; ++i) run_step(num_tokens, seconds);
    return num_tokens / seconds;
  }

  void set_acceptance(double acceptance) { acceptance_ = acceptance; }
  void set_num_seqs(int num_seqs) { num_seqs_ = num_seqs; }
  int num_verified() const { return num_verified_; }  // in the last step
  const std::vector<int>& history() const { return history_; }

 private:
  void run_step(double& num_tokens, double& seconds) {
    if (in_flight_.size() == 2) {
      drafts_.observe(in_flight_.front());
      in_flight_.pop_front();
    }
    num_verified_ = drafts_.num_verified(num_seqs_, most_);
    EXPECT_LE(num_verified_, num_proposed_) << "more than the drafter has proposed";
    num_proposed_ = drafts_.plan_proposals(num_seqs_, most_);
    history_.push_back(num_verified_);
    seconds += machine_.step_seconds(num_seqs_ * (1 + num_verified_)) +
               machine_.draft_seconds(num_proposed_, num_seqs_);
    std::vector<SpanDrafts>& spans = in_flight_.emplace_back();
    for (int i = 0; i < num_seqs_; ++i) {
      spans.push_back({.num_drafts = num_verified_, .num_accepted = num_accepted()});
      num_tokens += 1 + spans.back().num_accepted;
    }
  }

  int num_accepted() {
    int count = 0;
    while (count < num_verified_ && uniform_(random_) < acceptance_) ++count;
    return count;
  }

  Machine machine_;
  int most_;
  int num_seqs_;
  double acceptance_ = 0;
  UniformDrafts drafts_;
  int num_verified_ = 0;
  int num_proposed_ = 0;
  std::deque<std::vector<SpanDrafts>> in_flight_;
  std::vector<int> history_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<double> uniform_;
};

// Tokens per second with k drafts in every step.
double rate_of_fixed(const Machine& machine, double acceptance, int num_seqs, int k) {
  double survival = 1;
  double num_tokens = 1;
  for (int i = 0; i < k; ++i) num_tokens += survival *= acceptance;
  return num_seqs * num_tokens /
         (machine.step_seconds(num_seqs * (1 + k)) + machine.draft_seconds(k, num_seqs));
}

DraftCosts two_sizes() {
  return {.batch_sizes = {4, 8},
          .num_drafts = {0, 2},
          .verify_seconds = {1.0, 2.0, 3.0, 6.0},
          .propose_seconds = {0.0, 0.5, 0.0, 0.5}};
}

TEST(DraftCosts, InterpolateBetweenTheMeasuredNumbersOfSequences) {
  const DraftCosts costs = two_sizes();
  EXPECT_THAT(costs.step_seconds(4, 0), DoubleNear(1.0, 1e-9));
  EXPECT_THAT(costs.step_seconds(5, 0), DoubleNear(1.5, 1e-9));
  EXPECT_THAT(costs.step_seconds(6, 1), DoubleNear(4.5, 1e-9));
  EXPECT_THAT(costs.step_seconds(8, 1), DoubleNear(6.5, 1e-9));
  EXPECT_THAT(costs.step_seconds(1, 1), DoubleNear(2.5, 1e-9)) << "as the smallest";
  EXPECT_THAT(costs.step_seconds(9, 1), DoubleNear(6.5, 1e-9)) << "as the largest";
}

TEST(DraftCosts, AreTheSameOnAllRanks) {
  const DraftCosts first = two_sizes();
  DraftCosts own = first;
  for (double& seconds : own.verify_seconds) seconds *= 1.1;
  const Result<DraftCosts> taken = draft_costs_from_bytes(draft_costs_to_bytes(first), own);
  ASSERT_TRUE(taken.ok()) << taken.status().message();
  EXPECT_EQ(taken->batch_sizes, first.batch_sizes);
  EXPECT_EQ(taken->num_drafts, first.num_drafts);
  EXPECT_EQ(taken->verify_seconds, first.verify_seconds);
  EXPECT_EQ(taken->propose_seconds, first.propose_seconds);
}

TEST(DraftCosts, OfOtherStepsAreRefused) {
  const DraftCosts own = two_sizes();
  DraftCosts other = own;
  other.num_drafts.back() = 3;
  DraftCosts cut = own;
  cut.propose_seconds.pop_back();
  const std::string bytes = draft_costs_to_bytes(own);
  for (const std::string& wrong : {draft_costs_to_bytes(other), draft_costs_to_bytes(cut),
                                   std::string(), bytes + "x", bytes.substr(1)}) {
    EXPECT_EQ(draft_costs_from_bytes(wrong, own).status().code(), StatusCode::kInternal);
  }
}

TEST(UniformDrafts, VerifyNothingBeforeSomethingWasProposed) {
  UniformDrafts drafts({.batch_sizes = {1},
                        .num_drafts = {0, 1, 3},
                        .verify_seconds = {1.0, 1.0, 1.0},
                        .propose_seconds = {0.0, 0.0, 0.0}});
  EXPECT_EQ(drafts.num_verified(1, 3), 0);
  EXPECT_EQ(drafts.plan_proposals(1, 3), 3);
  EXPECT_EQ(drafts.num_verified(1, 3), 3);
  EXPECT_EQ(drafts.num_verified(1, 2), 1) << "2 was not measured";
  EXPECT_EQ(drafts.plan_proposals(1, 0), 0);
  EXPECT_EQ(drafts.num_verified(1, 3), 0);
}

TEST(UniformDrafts, ASaturatedBatchDraftsNothing) {
  Simulation simulation({linear_seconds, lookup_seconds}, {0, 1, 2, 3, 4}, 256);
  simulation.set_acceptance(0.5);
  simulation.run(100);
  const auto& history = simulation.history();
  EXPECT_LE(std::ranges::count_if(history, [](int n) { return n > 0; }), 6);
}

// Constrained sequences have no drafts, but their spans are as long as those of the others.
TEST(UniformDrafts, SequencesWithoutDraftsCountAgainstThem) {
  UniformDrafts drafts({.batch_sizes = {1, 64},
                        .num_drafts = {0, 1},
                        .verify_seconds = {1.0, 1.5, 1.0, 1.5},
                        .propose_seconds = {0.0, 0.0, 0.0, 0.0}});
  std::vector<SpanDrafts> spans(64, {.num_drafts = 1, .num_accepted = 1});
  for (int i = 0; i < 20; ++i) drafts.observe(spans);
  EXPECT_EQ(drafts.choose(64, 1), 1);
  std::ranges::fill(std::span(spans).first(48), SpanDrafts{.num_drafts = 1, .num_accepted = 0});
  for (int i = 0; i < 100; ++i) drafts.observe(spans);
  EXPECT_EQ(drafts.choose(64, 1), 0);
}

TEST(UniformDrafts, TheSameObservationsGiveTheSameChoices) {
  std::vector<int> histories[2];
  for (std::vector<int>& history : histories) {
    Simulation simulation({roofline_seconds, head_seconds}, {0, 1, 2, 3, 5, 7}, 48);
    simulation.set_acceptance(0.6);
    simulation.run(500);
    history = simulation.history();
  }
  EXPECT_EQ(histories[0], histories[1]);
  EXPECT_GT(std::ranges::max(histories[0]), std::ranges::min(histories[0]));
}

// The costs tell that drafts pay again, so nothing has to be learned.
TEST(UniformDrafts, ReturnAtOnceWhenTheBatchShrinks) {
  Simulation simulation({linear_seconds, lookup_seconds}, {0, 1, 2, 3, 4}, 4);
  simulation.set_acceptance(0.8);
  simulation.run(200);
  simulation.set_num_seqs(512);
  simulation.run(200);
  EXPECT_EQ(simulation.num_verified(), 0);
  simulation.set_num_seqs(4);
  simulation.run(2);
  EXPECT_GE(simulation.num_verified(), 2);
}

TEST(UniformDrafts, ReturnWhenMoreDraftsAreAccepted) {
  for (const int num_seqs : {1, 4, 32, 128}) {
    SCOPED_TRACE(num_seqs);
    const Machine machine = {roofline_seconds, head_seconds};
    Simulation simulation(machine, {0, 1, 2, 3, 4}, num_seqs);
    simulation.set_acceptance(0.01);
    simulation.run(500);
    EXPECT_EQ(simulation.num_verified(), 0);
    simulation.set_acceptance(0.9);
    simulation.run(2000);
    double best = 0;
    for (int k = 0; k <= 4; ++k) best = std::max(best, rate_of_fixed(machine, 0.9, num_seqs, k));
    EXPECT_GE(simulation.run(300), 0.95 * best);
  }
}

// A drafter that proposes all drafts in one pass does not pay with one draft, so a probe with one
// draft more would not bring it back.
TEST(UniformDrafts, ReturnToManyDraftsWhereOneDoesNotPay) {
  const Machine machine = {roofline_seconds, [](int k, int) { return k == 0 ? 0 : 4.1e-3; }};
  Simulation simulation(machine, {0, 1, 2, 3, 5, 7}, 8);
  simulation.set_acceptance(0.01);
  simulation.run(500);
  EXPECT_EQ(simulation.num_verified(), 0);
  simulation.set_acceptance(0.95);
  simulation.run(4000);
  EXPECT_GE(simulation.run(300), 0.95 * rate_of_fixed(machine, 0.95, 8, 7));
}

// A step with one decoding span per entry of `slots`, then a chunk of a prompt that samples in slot
// 3.
std::shared_ptr<BatchPlan> plan_of(const std::vector<int>& slots, int num_drafts) {
  auto plan = std::make_shared<BatchPlan>();
  plan->decode_q_len = 1 + num_drafts;
  plan->max_next_drafts = 2;
  for (const int slot : slots) {
    plan->spans.push_back({.slot = slot,
                           .decodes = true,
                           .num_tokens = 1 + num_drafts,
                           .samples = true,
                           .num_drafts = num_drafts});
  }
  plan->spans.push_back({.slot = 3, .num_tokens = 7, .samples = true});
  return plan;
}

std::vector<int> num_drafts_of(const BatchPlan& plan) {
  std::vector<int> counts;
  for (const SeqSpan& span : plan.spans) counts.push_back(span.num_drafts);
  return counts;
}

TEST(StepDrafts, VerifyAllDraftsOfThePlanWithoutCosts) {
  StepDrafts drafts(4);
  EXPECT_EQ(drafts.num_verified(7, 3), 3);
  EXPECT_EQ(drafts.plan_proposals(*plan_of({0}, 0)), 2);
}

TEST(StepDrafts, LeaveOutDraftsThatWereNotProposed) {
  StepDrafts drafts(4);
  drafts.plan_proposals(*plan_of({0, 1}, 0));
  const auto later = plan_of({1, 0}, 2);
  EXPECT_EQ(drafts.without_missing(later), later) << "no copy where all exist";
  auto none = plan_of({1}, 2);
  none->max_next_drafts = 0;
  drafts.plan_proposals(*none);
  const auto mixed = drafts.without_missing(plan_of({0, 1, 2}, 2));
  EXPECT_THAT(num_drafts_of(*mixed), ElementsAre(2, 0, 0, 0)) << "slot 2 has never had any";
  EXPECT_EQ(mixed->spans[1].num_tokens, 3) << "all spans keep their length";
}

TEST(StepDrafts, LearnFromDecodingSpans) {
  StepDrafts drafts(4);
  drafts.adapt(two_sizes());
  EXPECT_EQ(drafts.num_verified(4, 2), 0);
  // A step with drafts and the proposal takes 2.5 times as long, and brings 3 times the tokens.
  const auto plan = plan_of({0, 1}, 2);
  for (int i = 0; i < 400; ++i) {
    std::vector<SpanResult> results(3);
    results[0].tokens.resize(3);
    results[1].tokens.resize(3);
    results[2].tokens.resize(1);  // the prompt's first token is no rejected draft
    drafts.observe(*plan, results);
  }
  EXPECT_EQ(drafts.plan_proposals(*plan), 2);
  EXPECT_EQ(drafts.num_verified(4, 2), 2);
  for (int i = 0; i < 400; ++i) {
    std::vector<SpanResult> results(3);
    results[0].tokens.resize(3);
    results[1].tokens.resize(1);
    drafts.observe(*plan, results);
  }
  EXPECT_EQ(drafts.plan_proposals(*plan), 0);
  EXPECT_EQ(drafts.num_verified(4, 2), 0);
}

struct NamedMachine {
  const char* name;
  Machine machine;
};
const std::vector<NamedMachine>& machines() {
  static const std::vector<NamedMachine> all = {
      {"RooflineLookup", {roofline_seconds, lookup_seconds}},
      {"RooflineHead", {roofline_seconds, head_seconds}},
      {"RooflineBlock", {roofline_seconds, block_seconds}},
      {"LinearLookup", {linear_seconds, lookup_seconds}}};
  return all;
}

// Index of the machine, the number of sequences, and the mean accepted length of 4 drafts.
class UniformRates : public ::testing::TestWithParam<std::tuple<size_t, int, double>> {};

// Never slower than without drafts, beyond the time of the probes, and near the best number.
TEST_P(UniformRates, AreNearTheBestOfAllNumbersOfDrafts) {
  const auto [machine_idx, num_seqs, length] = GetParam();
  const Machine& machine = machines()[machine_idx].machine;
  const double acceptance = acceptance_for(length, 4);
  Simulation simulation(machine, {0, 1, 2, 3, 4}, num_seqs);
  simulation.set_acceptance(acceptance);
  simulation.run(400);
  const double rate = simulation.run(400 + 40000 / num_seqs);
  double best = 0;
  for (int k = 0; k <= 4; ++k) {
    best = std::max(best, rate_of_fixed(machine, acceptance, num_seqs, k));
  }
  EXPECT_GE(rate, 0.97 * best);
  EXPECT_GE(rate, 0.99 * rate_of_fixed(machine, acceptance, num_seqs, 0));
}

std::string name_of(const ::testing::TestParamInfo<UniformRates::ParamType>& param) {
  const auto& [machine_idx, num_seqs, length] = param.param;
  return machines()[machine_idx].name + std::to_string(num_seqs) + "SeqsLength" +
         std::to_string(static_cast<int>(10 * length));
}

INSTANTIATE_TEST_SUITE_P(
    Concurrency, UniformRates,
    ::testing::Combine(::testing::Range(size_t{0}, machines().size()),
                       ::testing::Values(1, 2, 3, 8, 16, 33, 64, 100, 128, 200, 256, 300, 512),
                       ::testing::Values(1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0, 5.0)),
    name_of);

}  // namespace
}  // namespace quire
