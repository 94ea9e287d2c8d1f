#include "base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "base/cpu_topology.h"
#include "base/machine.h"
#include "support/eventually.h"
#include "support/thread_places.h"

namespace quire {
namespace {

using ::testing::ElementsAre;

using testing::on_nodes;

constexpr std::chrono::milliseconds kLongerThanWorkersSpin(20);
// A region lasts so long that a worker that wakes up late still takes part.
constexpr std::chrono::milliseconds kTimeToArrive(5);

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
  std::this_thread::sleep_for(kLongerThanWorkersSpin);
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

TEST_P(ThreadPoolTest, RegionsUseTheFirstThreadsAlone) {
  ThreadPool pool(GetParam());
  for (int round = 0; round < 300; ++round) {
    const int num_used = 1 + round % (GetParam() + 1);  // also more than there are
    pool.use_threads(num_used);
    std::atomic<int> sum = 0;
    pool.run([&](int thread_idx) {
      EXPECT_LT(thread_idx, num_used);
      ++sum;
    });
    ASSERT_LE(sum, num_used);
    sum = 0;
    pool.parallel_for(100, [&](int64_t) { ++sum; });
    ASSERT_EQ(sum, 100);
  }
}

TEST_P(ThreadPoolTest, EachItemIsDoneOnceByNode) {
  std::vector<int> nodes(static_cast<size_t>(GetParam()));
  for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<int>(i % 3);
  ThreadPool pool(on_nodes(nodes));
  for (int round = 0; round < 1000; ++round) {
    pool.use_threads(1 + round % GetParam());
    std::vector<int> done(static_cast<size_t>(round % 97), 0);
    pool.parallel_for_by_node(static_cast<int64_t>(done.size()),
                              [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
    for (const int count : done) ASSERT_EQ(count, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, ::testing::Values(1, 2, 3, 8));

TEST(ThreadPool, UnusedThreadsComeBack) {
  ThreadPool pool(4);
  pool.use_threads(1);
  std::this_thread::sleep_for(kLongerThanWorkersSpin);
  pool.use_threads(4);
  std::atomic<int> num_arrived = 0;
  EXPECT_TRUE(testing::eventually([&] {
    num_arrived = 0;
    pool.run([&](int) {
      ++num_arrived;
      std::this_thread::sleep_for(kTimeToArrive);
    });
    return num_arrived == 4;
  }));
}

TEST(ThreadPool, UnusedThreadsUseNoProcessorTime) {
  ThreadPool pool(8);
  pool.use_threads(1);
  std::this_thread::sleep_for(kLongerThanWorkersSpin);
  const int64_t all_before = process_cpu_ns();
  const int64_t caller_before = thread_cpu_ns();
  for (int round = 0; round < 300; ++round) {
    // The time in which idle workers would spin.
    pool.run([](int) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
  }
  const int64_t workers = process_cpu_ns() - all_before - (thread_cpu_ns() - caller_before);
  EXPECT_LT(workers, 100'000'000) << "seven spinning workers would use more than two seconds";
}

TEST(ThreadPool, BindsEachThreadToItsPlace) {
  const std::vector<int> allowed = thread_affinity();
  ASSERT_FALSE(allowed.empty());
  const std::vector<int> first = {allowed.front()};
  const std::vector<int> last = {allowed.back()};
  ThreadPool pool({{.cpus = first}, {.cpus = last}, {.cpus = allowed}});
  std::mutex mutex;
  std::vector<std::vector<int>> seen(3);
  const auto look = [&] {
    const auto is_seen = [](const std::vector<int>& cpus) { return !cpus.empty(); };
    EXPECT_TRUE(testing::eventually([&] {
      pool.run([&](int thread_idx) {
        {
          const std::lock_guard lock(mutex);
          seen[static_cast<size_t>(thread_idx)] = thread_affinity();
        }
        std::this_thread::sleep_for(kTimeToArrive);
      });
      return std::ranges::all_of(seen, is_seen);
    }));
  };
  look();
  EXPECT_THAT(seen, ElementsAre(allowed, last, allowed)) << "the caller is not bound by a region";
  {
    const BoundThread bound = pool.bind_caller();
    seen.assign(3, {});
    look();
    EXPECT_THAT(seen, ElementsAre(first, last, allowed));
  }
  EXPECT_EQ(thread_affinity(), allowed) << "the caller's affinity is restored";
}

TEST(ThreadPool, RunsWhereTheKernelRefusesAPlace) {
  ThreadPool pool({{.cpus = {60'000}}, {.cpus = {60'001}}});
  const std::vector<int> before = thread_affinity();
  {
    const BoundThread bound = pool.bind_caller();
    std::atomic<int> sum = 0;
    pool.parallel_for(100, [&](int64_t) { ++sum; });
    EXPECT_EQ(sum, 100);
  }
  EXPECT_EQ(thread_affinity(), before);
}

TEST(NodeTasks, SharesAreProportionalToThreads) {
  const ThreadPool pool(on_nodes({4, 7, 4, 4}));
  EXPECT_THAT(pool.nodes(), ElementsAre(4, 7));
  EXPECT_EQ(pool.node_of(0), 0);
  EXPECT_EQ(pool.node_of(1), 1);
  for (const int64_t count : {0, 1, 2, 7, 100, 1'000'003}) {
    const ThreadPool::Share first = pool.share(0, count);
    const ThreadPool::Share second = pool.share(1, count);
    EXPECT_EQ(first.begin, 0);
    EXPECT_EQ(first.end, count * 3 / 4);
    EXPECT_EQ(second.begin, first.end);
    EXPECT_EQ(second.end, count);
  }
}

TEST(NodeTasks, AThreadTakesItsNodesShareFirstAndThenHelps) {
  ThreadPool pool(on_nodes({0, 1, 2}));
  const auto taken_by = [&](int thread_idx, int64_t most) {
    NodeTasks tasks(pool);
    std::vector<int64_t> taken;
    tasks.run(thread_idx, most, [&](int64_t i) { taken.push_back(i); });
    return taken;
  };
  EXPECT_THAT(taken_by(0, 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(taken_by(1, 6), ElementsAre(2, 3, 4, 5, 0, 1));
  EXPECT_THAT(taken_by(2, 6), ElementsAre(4, 5, 0, 1, 2, 3));

  // While all threads take tasks, none helps before its own share is done.
  NodeTasks tasks(pool);
  std::vector<int64_t> of_first;
  tasks.run(0, 6, [&](int64_t i) {
    of_first.push_back(i);
    if (i > 0) return;
    EXPECT_EQ(tasks.take(1), 0) << "thread 1 takes its first task";
  });
  EXPECT_THAT(of_first, ElementsAre(0, 1, 3, 4, 5));
}

TEST(ThreadPool, IdleWorkersUseNoProcessorTime) {
  ThreadPool pool(4);
  pool.parallel_for(100, [](int64_t) {});
  std::this_thread::sleep_for(kLongerThanWorkersSpin);
  const int64_t before = process_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the time that is measured
  EXPECT_LT(process_cpu_ns() - before, 100'000'000)
      << "four spinning workers would use more than a second";
}

}  // namespace
}  // namespace quire
