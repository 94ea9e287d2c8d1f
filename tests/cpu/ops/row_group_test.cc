// The distribution of the tasks of several matrices over threads and nodes.
#include "cpu/ops/row_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <span>
#include <tuple>
#include <vector>

#include "support/thread_places.h"

namespace quire::cpu {
namespace {

using ::testing::ElementsAre;
using Task = std::tuple<int64_t, int64_t, int64_t>;  // group, part, row block

// Group i, by its first row.
std::vector<RowGroup> make_groups(size_t count) {
  std::vector<RowGroup> groups(count);
  for (size_t i = 0; i < count; ++i) groups[i].first_row = static_cast<int64_t>(i);
  return groups;
}

std::vector<Task> tasks_of_thread(ThreadPool& pool, int thread_idx,
                                  const std::vector<GroupTasks>& sizes) {
  const std::vector<RowGroup> groups = make_groups(sizes.size());
  NodeTasks tasks(pool);
  std::vector<Task> taken;
  run_group_tasks(
      std::span<const RowGroup>(groups), tasks, thread_idx,
      [&](const RowGroup& group) { return sizes[static_cast<size_t>(group.first_row)]; },
      [&](const RowGroup& group, int64_t part, int64_t row_block) {
        taken.emplace_back(group.first_row, part, row_block);
      });
  return taken;
}

TEST(RunGroupTasks, OnOneNodeGoesThroughAllInOrder) {
  ThreadPool pool(2);
  EXPECT_THAT(tasks_of_thread(pool, 1, {{.num_parts = 2, .num_row_blocks = 2}, {0}, {3}}),
              ElementsAre(Task{0, 0, 0}, Task{0, 1, 0}, Task{0, 0, 1}, Task{0, 1, 1}, Task{2, 0, 0},
                          Task{2, 1, 0}, Task{2, 2, 0}));
}

// The parts of a matrix belong to the nodes in which they were packed, for every block of rows.
TEST(RunGroupTasks, TakesThePartsOfTheThreadsNodeFirst) {
  ThreadPool pool(testing::on_nodes({0, 1}));
  const std::vector<GroupTasks> sizes = {{.num_parts = 4, .num_row_blocks = 2}, {1}, {2}};
  EXPECT_THAT(
      tasks_of_thread(pool, 1, sizes),
      ElementsAre(Task{0, 2, 0}, Task{0, 3, 0}, Task{0, 2, 1}, Task{0, 3, 1}, Task{1, 0, 0},
                  Task{2, 1, 0},  // the end of the node's share
                  Task{0, 0, 0}, Task{0, 1, 0}, Task{0, 0, 1}, Task{0, 1, 1}, Task{2, 0, 0}));
}

TEST(RunGroupTasks, EachTaskIsDoneOnce) {
  for (const auto& nodes : {std::vector{0}, {0, 0, 0}, {0, 1}, {0, 1, 0, 2}}) {
    ThreadPool pool(testing::on_nodes(nodes));
    for (int64_t round = 0; round < 200; ++round) {
      const std::vector<GroupTasks> sizes = {
          {.num_parts = round % 7, .num_row_blocks = 1 + round % 3}, {round % 2}, {}, {5, 2}};
      const std::vector<RowGroup> groups = make_groups(sizes.size());
      std::mutex mutex;
      std::map<Task, int> done;
      NodeTasks tasks(pool);
      pool.run([&](int thread_idx) {
        run_group_tasks(
            std::span<const RowGroup>(groups), tasks, thread_idx,
            [&](const RowGroup& group) { return sizes[static_cast<size_t>(group.first_row)]; },
            [&](const RowGroup& group, int64_t part, int64_t row_block) {
              const std::lock_guard lock(mutex);
              ++done[{group.first_row, part, row_block}];
            });
      });
      size_t num_tasks = 0;
      for (const GroupTasks& size : sizes) {
        num_tasks += static_cast<size_t>(size.num_parts * size.num_row_blocks);
      }
      ASSERT_EQ(done.size(), num_tasks);
      for (const auto& [task, count] : done) ASSERT_EQ(count, 1);
    }
  }
}

}  // namespace
}  // namespace quire::cpu
