#include "server/health_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

namespace quire::server {
namespace {

using namespace std::chrono_literals;

class HealthWatchTest : public ::testing::Test {
 protected:
  Status at(std::chrono::seconds time, int64_t num_steps, int num_waiting) {
    const EngineStats stats = {.num_waiting = num_waiting, .num_steps = num_steps};
    const ReplicaState replica = {.stats = stats};
    return watch_.check({&replica, 1}, HealthWatch::Clock::time_point(time)).status;
  }
  HealthWatch watch_{30s};
};

TEST_F(HealthWatchTest, IdleIsHealthyForever) {
  EXPECT_TRUE(at(0s, 5, 0).ok());
  EXPECT_TRUE(at(1000s, 5, 0).ok());
  EXPECT_TRUE(at(1001s, 5, 1).ok()) << "the work has just arrived";
}

TEST_F(HealthWatchTest, WorkWithoutAStepIsNot) {
  EXPECT_TRUE(at(0s, 5, 1).ok());
  EXPECT_TRUE(at(29s, 5, 1).ok());
  const Status stuck = at(31s, 5, 3);
  EXPECT_EQ(stuck.code(), StatusCode::kUnavailable);
  EXPECT_THAT(stuck.message(), ::testing::HasSubstr("31 s"));
  EXPECT_THAT(stuck.message(), ::testing::HasSubstr("3 wait"));
  EXPECT_TRUE(at(32s, 6, 3).ok()) << "a step has ended";
}

TEST(HealthWatchOfPools, ATaskThatDoesNotEndIsFoundOut) {
  WorkerPool workers(1);
  HealthWatch watch(30s, {{"parsing", &workers}});
  const auto at = [&](std::chrono::seconds time) {
    return watch.check({}, HealthWatch::Clock::time_point(time)).status;
  };
  const auto post_and_wait = [&] {
    std::promise<void> done;
    workers.post([&] { done.set_value(); });
    done.get_future().wait();
  };
  EXPECT_TRUE(at(0s).ok());
  EXPECT_TRUE(at(100s).ok()) << "nothing to do";
  std::promise<void> prompt_started, release;
  workers.post([&] {
    prompt_started.set_value();
    release.get_future().wait();
  });
  prompt_started.get_future().wait();
  workers.post([] {});
  EXPECT_TRUE(at(101s).ok());
  EXPECT_TRUE(at(129s).ok());
  const Status stuck = at(131s);
  EXPECT_EQ(stuck.code(), StatusCode::kUnavailable);
  EXPECT_THAT(stuck.message(),
              ::testing::HasSubstr("the parsing threads have ended no task for 31 s; 2 tasks are"));
  release.set_value();
  post_and_wait();
  EXPECT_TRUE(at(132s).ok());
}

TEST_F(HealthWatchTest, ReportsTheEnginesHealth) {
  const ReplicaState failed = {.health = unavailable("[cuda] gone")};
  const HealthWatch::Report report = watch_.check({&failed, 1}, {});
  EXPECT_EQ(report.status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(report.status.message(), ::testing::HasSubstr("[cuda] gone"));
  EXPECT_THAT(report.for_clients.message(), ::testing::HasSubstr("the engine has failed"));
}

TEST_F(HealthWatchTest, NamesTheReplica) {
  const auto at = [&](std::chrono::seconds time, int64_t steps_of_first, const Status& last) {
    const ReplicaState replicas[] = {{.stats = {.num_running = 1, .num_steps = steps_of_first}},
                                     {.stats = {.num_running = 1, .num_steps = 7}},
                                     {.health = last}};
    return watch_.check(replicas, HealthWatch::Clock::time_point(time));
  };
  EXPECT_TRUE(at(0s, 1, {}).status.ok());
  EXPECT_TRUE(at(29s, 2, {}).for_clients.ok());
  const auto stuck = at(31s, 3, {});
  EXPECT_THAT(stuck.status.message(), ::testing::HasSubstr("replica 1: [server] the engine has"));
  EXPECT_THAT(stuck.for_clients.message(), ::testing::HasSubstr("replica 1 of the engine"));
  EXPECT_EQ(stuck.for_clients.code(), StatusCode::kUnavailable);
  const auto failed = at(31s, 4, unavailable("[cuda] gone"));
  EXPECT_THAT(failed.status.message(), ::testing::HasSubstr("replica 1")) << "the first one";
  EXPECT_THAT(at(62s, 4, unavailable("[cuda] gone")).for_clients.message(),
              ::testing::HasSubstr("replica 0 of the engine"));
}

TEST(TokenRate, IsThatOfTheLatestInterval) {
  TokenRate rate;
  const TokenRate::Clock::time_point start{100s};
  EXPECT_EQ(rate.per_second(), 0);
  rate.sample(1000, start);
  EXPECT_EQ(rate.per_second(), 0) << "one sample has no interval";
  rate.sample(1300, start + 2s);
  EXPECT_EQ(rate.per_second(), 150);
  rate.sample(1300, start + 3s);
  EXPECT_EQ(rate.per_second(), 0);
}

}  // namespace
}  // namespace quire::server
