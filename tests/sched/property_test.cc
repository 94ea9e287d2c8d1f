// Runs random operations on a scheduler and executes its plans on a fake device (scheduler_sim.h).
#include <gtest/gtest.h>

#include <random>

#include "sched/scheduler_sim.h"

namespace quire::testing {
namespace {

class SchedulerProperties : public ::testing::TestWithParam<int> {};

TEST_P(SchedulerProperties, HoldUnderRandomOperations) {
  ScenarioResult total;
  for (int i = 0; i < 100; ++i) {
    std::mt19937 rng(static_cast<unsigned>(GetParam() * 1000 + i));
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(rng() % n); };
    const ScenarioResult result = run_scenario(below, 300);
    total.num_answered += result.num_answered;
    total.num_shared_tokens += result.num_shared_tokens;
    total.stats.num_preemptions += result.stats.num_preemptions;
    total.num_accepted_drafts += result.num_accepted_drafts;
    total.num_rejected_drafts += result.num_rejected_drafts;
    total.num_accepted_reported += result.num_accepted_reported;
    total.num_draft_changes += result.num_draft_changes;
  }
  // The scenarios contain the checks. This only ensures that they cover the interesting cases.
  EXPECT_GT(total.num_answered, 100);
  EXPECT_GT(total.num_shared_tokens, 100);
  EXPECT_GT(total.stats.num_preemptions, 10);
  EXPECT_GT(total.num_accepted_drafts, 1000);
  EXPECT_GT(total.num_rejected_drafts, 1000);
  EXPECT_GT(total.num_accepted_reported, 100);
  EXPECT_GT(total.num_draft_changes, 1000);
}

INSTANTIATE_TEST_SUITE_P(Seeds, SchedulerProperties, ::testing::Range(0, 10));

}  // namespace
}  // namespace quire::testing
