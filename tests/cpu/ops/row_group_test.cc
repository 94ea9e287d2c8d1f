// The distribution of the tasks of several matrices over threads and nodes.
#include "cpu/ops/row_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "support/thread_places.h"

namespace quire::cpu {
namespace {

using ::testing::ElementsAre;
using Task = std::pair<int64_t, int64_t>;  // group, part

// Group i, by its first row.
std::vector<RowGroup> make_groups(size_t count) {
  std::vector<RowGroup> groups(count);
  for (size_t i = 0; i < count; ++i) groups[i].first_row = static_cast<int64_t>(i);
  return groups;
}

std::vector<Task> tasks_of_thread(ThreadPool& pool, int thread_idx,
                                  const std::vector<int64_t>& sizes) {
  const std::vector<RowGroup> groups = make_groups(sizes.size());
  NodeTasks tasks(pool);
  std::vector<Task> taken;
  run_group_tasks(
      std::span<const RowGroup>(groups), tasks, thread_idx,
      [&](const RowGroup& group) { return sizes[static_cast<size_t>(group.first_row)]; },
      [&](const RowGroup& group, int64_t part) { taken.emplace_back(group.first_row, part); });
  return taken;
}

TEST(RunGroupTasks, OnOneNodeGoesThroughAllInOrder) {
  ThreadPool pool(2);
  EXPECT_THAT(tasks_of_thread(pool, 1, {2, 0, 3}),
              ElementsAre(Task{0, 0}, Task{0, 1}, Task{2, 0}, Task{2, 1}, Task{2, 2}));
}

// The parts of a matrix belong to the nodes in which they were packed.
TEST(RunGroupTasks, TakesThePartsOfTheThreadsNodeFirst) {
  ThreadPool pool(testing::on_nodes({0, 1}));
  EXPECT_THAT(
      tasks_of_thread(pool, 1, {4, 1, 2}),
      ElementsAre(Task{0, 2}, Task{0, 3}, Task{1, 0}, Task{2, 1},  // the end of the node's share
                  Task{0, 0}, Task{0, 1}, Task{2, 0}));
}

TEST(RunGroupTasks, EachTaskIsDoneOnce) {
  for (const auto& nodes : {std::vector{0}, {0, 0, 0}, {0, 1}, {0, 1, 0, 2}}) {
    ThreadPool pool(testing::on_nodes(nodes));
    for (int64_t round = 0; round < 200; ++round) {
      const std::vector<int64_t> sizes = {round % 7, round % 2, 0, 5};
      const std::vector<RowGroup> groups = make_groups(sizes.size());
      std::mutex mutex;
      std::map<Task, int> done;
      NodeTasks tasks(pool);
      pool.run([&](int thread_idx) {
        run_group_tasks(
            std::span<const RowGroup>(groups), tasks, thread_idx,
            [&](const RowGroup& group) { return sizes[static_cast<size_t>(group.first_row)]; },
            [&](const RowGroup& group, int64_t part) {
              const std::lock_guard lock(mutex);
              ++done[{group.first_row, part}];
            });
      });
      const int64_t num_tasks = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
      ASSERT_EQ(std::ssize(done), num_tasks);
      for (const auto& [task, count] : done) ASSERT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace quire::cpu
