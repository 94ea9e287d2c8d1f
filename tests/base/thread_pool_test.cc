#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "base/machine.h"

namespace quire {
namespace {

class ThreadPoolTest : public ::testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EachItemIsDoneOnceBeforeTheCallReturns) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 2000; ++round) {
    std::vector<int> done(static_cast<size_t>(round % 97), 0);
    pool.parallel_for(static_cast<int64_t>(done.size()),
                      [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
    for (const int count : done) ASSERT_EQ(count, 1);
  }
}

TEST_P(ThreadPoolTest, NoThreadIndexIsUsedTwiceInARegion) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(GetParam()));
    pool.run([&](int thread_idx) { ++calls[static_cast<size_t>(thread_idx)]; });
    EXPECT_EQ(calls[0], 1) << "the caller always takes part";
    for (const auto& count : calls) ASSERT_LE(count, 1);
  }
}

TEST_P(ThreadPoolTest, WorkersWakeUpAgainAfterSleeping) {
  ThreadPool pool(GetParam());
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  std::atomic<int> sum = 0;
  pool.parallel_for(1000, [&](int64_t) { ++sum; });
  EXPECT_EQ(sum, 1000);
}

TEST_P(ThreadPoolTest, AnExceptionOfAnyThreadReachesTheCaller) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 200; ++round) {
    const int64_t bad = round % 50;
    const auto work = [&](int64_t i) {
      if (i == bad) throw std::runtime_error("no memory, say");
    };
    EXPECT_THROW(pool.parallel_for(50, work), std::runtime_error);
    std::atomic<int> sum = 0;
    pool.parallel_for(50, [&](int64_t) { ++sum; });
    ASSERT_EQ(sum, 50) << "a region after a failed one";
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, IdleWorkersUseNoProcessorTime) {
  ThreadPool pool(4);
  pool.parallel_for(100, [](int64_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than the workers spin
  const int64_t before = process_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(process_cpu_ns() - before, 100'000'000)
      << "four spinning workers would use more than a second";
}

}  // namespace
}  // namespace quire
