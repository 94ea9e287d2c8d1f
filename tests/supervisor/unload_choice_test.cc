#include "supervisor/unload_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace quire::supervisor {
namespace {

using Action = UnloadChoice::Action;

LiveModel model(size_t idx, int64_t num_bytes, int age, bool is_busy = false) {
  return {.idx = idx,
          .memory = {.num_bytes = num_bytes},
          .is_busy = is_busy,
          .last_used = std::chrono::steady_clock::time_point() + std::chrono::hours(1000 - age)};
}

TEST(Capacity, UnloadsTheLeastRecentlyUsedIdleModel) {
  const std::vector<LiveModel> live = {model(0, 10, 1), model(1, 10, 3), model(2, 10, 2)};
  const Capacity full = {.host_bytes = 0};
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 10}, full).unload, std::vector<size_t>{1});
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 11}, full).unload, (std::vector<size_t>{1, 2}));
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 5}, {.host_bytes = 5}).action, Action::kStart);
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 99}, full).action, Action::kNeverFits);
  EXPECT_TRUE(choose_unloads(live, {.num_bytes = 99}, full).unload.empty());
  EXPECT_EQ(choose_unloads({}, {.num_bytes = 99}, full).action, Action::kStart);
}

TEST(Capacity, LeavesOutModelsThatALargerOneMakesUnnecessary) {
  const std::vector<LiveModel> live = {model(0, 1, 9), model(1, 100, 5)};
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 100}, {.host_bytes = 0}).unload,
            std::vector<size_t>{1});
}

TEST(Capacity, WaitsForBusyModelsAndHoldsThem) {
  const std::vector<LiveModel> live = {model(0, 10, 9, true), model(1, 10, 5)};
  const UnloadChoice fits = choose_unloads(live, {.num_bytes = 10}, {.host_bytes = 0});
  EXPECT_EQ(fits.unload, std::vector<size_t>{1}) << "the busy one is older";
  const UnloadChoice choice = choose_unloads(live, {.num_bytes = 20}, {.host_bytes = 0});
  EXPECT_EQ(choice.action, Action::kWait);
  EXPECT_TRUE(choice.unload.empty());
  EXPECT_EQ(choice.hold, std::vector<size_t>{0});
}

TEST(Capacity, LimitsTheNumberAndSeparatesGpuFromHost) {
  std::vector<LiveModel> live = {model(0, 10, 9), model(1, 10, 5)};
  EXPECT_EQ(choose_unloads(live, {.num_bytes = 0}, {.host_bytes = 99, .max_models = 2}).unload,
            std::vector<size_t>{0});
  live[1].memory.is_on_gpu = true;
  const PlannedMemory wanted = {.is_on_gpu = true, .num_bytes = 10};
  EXPECT_EQ(choose_unloads(live, wanted, {.host_bytes = 0, .gpu_bytes = 0}).unload,
            std::vector<size_t>{1});
  EXPECT_EQ(choose_unloads(live, wanted, {.host_bytes = 0}).action, Action::kStart) << "unknown";
  const UnloadChoice never = choose_unloads(live, {.is_on_gpu = true, .num_bytes = 99},
                                            {.host_bytes = 500, .gpu_bytes = 7});
  EXPECT_EQ(never.action, Action::kNeverFits);
  EXPECT_EQ(never.bound_bytes, 17) << "of the GPU, without the model on it";
}

TEST(Capacity, WaitsForAModelThatLeavesInsteadOfUnloadingAnother) {
  std::vector<LiveModel> live = {model(0, 10, 9), model(1, 10, 5)};
  live[1].is_leaving = true;
  const UnloadChoice choice = choose_unloads(live, {.num_bytes = 10}, {.host_bytes = 0});
  EXPECT_EQ(choice.action, Action::kWait);
  EXPECT_TRUE(choice.unload.empty() && choice.hold.empty());
}

// The outcome of a choice by brute force over all subsets of idle models.
bool some_subset_fits(const std::vector<LiveModel>& live, int64_t wanted,
                      const Capacity& capacity) {
  for (unsigned set = 0; set < 1U << live.size(); ++set) {
    int64_t free_bytes = capacity.host_bytes;
    size_t num_left = 0;
    bool is_allowed = true;
    for (size_t i = 0; i < live.size(); ++i) {
      const bool goes = (set >> i & 1) != 0 || live[i].is_leaving;
      is_allowed = is_allowed && !(goes && live[i].is_busy);
      if (goes) free_bytes += live[i].memory.num_bytes;
      if (!goes) ++num_left;
    }
    const bool has_place =
        capacity.max_models == 0 || num_left < static_cast<size_t>(capacity.max_models);
    if (is_allowed && has_place && wanted <= free_bytes) return true;
  }
  return false;
}

TEST(Capacity, HoldsItsPropertiesForRandomModels) {
  std::mt19937 random(7);
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<LiveModel> live;
    for (int i = pick(6); i > 0; --i) {
      live.push_back(model(live.size(), pick(10), pick(4), pick(3) == 0));
      live.back().is_leaving = !live.back().is_busy && pick(6) == 0;
    }
    const PlannedMemory wanted = {.num_bytes = pick(30)};
    const Capacity capacity = {.host_bytes = pick(12), .max_models = pick(5)};
    const UnloadChoice choice = choose_unloads(live, wanted, capacity);
    int64_t all_bytes = capacity.host_bytes;
    for (const LiveModel& one : live) all_bytes += one.memory.num_bytes;
    const bool never_fits = !live.empty() && wanted.num_bytes > all_bytes;
    ASSERT_EQ(choice.action == Action::kNeverFits, never_fits);
    if (never_fits) {
      ASSERT_TRUE(choice.unload.empty() && choice.hold.empty());
      continue;
    }
    int64_t free_bytes = capacity.host_bytes;
    bool has_busy = false;
    bool has_leaving = false;
    for (const LiveModel& one : live) {
      const bool is_unloaded = std::ranges::count(choice.unload, one.idx) > 0;
      const bool is_held = std::ranges::count(choice.hold, one.idx) > 0;
      ASSERT_FALSE(is_unloaded && (one.is_busy || one.is_leaving)) << "a busy model is unloaded";
      ASSERT_FALSE(is_held && !one.is_busy);
      has_busy = has_busy || one.is_busy;
      has_leaving = has_leaving || one.is_leaving;
      if (is_unloaded || one.is_leaving) free_bytes += one.memory.num_bytes;
    }
    if (choice.action == Action::kStart) {
      ASSERT_TRUE(choice.unload.empty() && choice.hold.empty());
      ASSERT_TRUE(live.empty() || wanted.num_bytes <= capacity.host_bytes);
      continue;
    }
    // It never waits for nothing.
    ASSERT_TRUE(!choice.unload.empty() || !choice.hold.empty() || has_leaving);
    if (some_subset_fits(live, wanted.num_bytes, capacity)) {
      ASSERT_TRUE(choice.hold.empty()) << "held a busy model although idle ones suffice";
      ASSERT_LE(wanted.num_bytes, free_bytes);
      // Each unloaded model is necessary.
      for (const size_t idx : choice.unload) {
        const bool has_place =
            capacity.max_models == 0 ||
            live.size() - choice.unload.size() -
                    static_cast<size_t>(std::ranges::count_if(live, &LiveModel::is_leaving)) + 1 <
                static_cast<size_t>(capacity.max_models);
        ASSERT_TRUE(wanted.num_bytes > free_bytes - live[idx].memory.num_bytes || !has_place);
      }
    } else {
      ASSERT_TRUE(has_busy ? choice.unload.empty() : choice.hold.empty());
    }
  }
}

}  // namespace
}  // namespace quire::supervisor
