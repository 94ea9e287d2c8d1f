// Products of several matrices of one shape with different rows of the same activations, so that
// one parallel region computes all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"

namespace quire::cpu {

// Adjacent rows that one matrix multiplies.
struct RowGroup {
  const PackedLinear* w = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t end_row() const { return first_row + num_rows; }
};

// Upper bound of the rows of one call with several groups.
inline constexpr int64_t kMaxGroupedRows = 256;
// Each group begins at a multiple of this, the rows of an AMX tile. Rows of x and out between
// groups are not accessed.
inline constexpr int64_t kGroupAlign = 16;
inline constexpr size_t kMaxGroups = kMaxGroupedRows / kGroupAlign;

// A thread's part of the tasks of all groups: calls body(group, task) with task of
// [0, num_tasks(group)), in ascending order. The threads share the counter `next`, which begins at
// zero.
template <class NumTasks, class Body>
void run_group_tasks(std::span<const RowGroup> groups, std::atomic<int64_t>& next,
                     const NumTasks& num_tasks, const Body& body) {
  size_t g = 0;
  int64_t first_task = 0;  // of group g
  for (int64_t i = next.fetch_add(1);; i = next.fetch_add(1)) {
    while (g < groups.size() && i >= first_task + num_tasks(groups[g])) {
      first_task += num_tasks(groups[g++]);
    }
    if (g == groups.size()) return;
    body(groups[g], i - first_task);
  }
}

// Calls body(group, row) for each row of the groups; on several threads if the rows, of `width`
// elements each, have more than `serial_elements`.
template <class Body>
void for_group_rows(std::span<const RowGroup> groups, int64_t width, int64_t serial_elements,
                    ThreadPool& pool, const Body& body) {
  int64_t num_rows = 0;
  for (const RowGroup& group : groups) num_rows += group.num_rows;
  const auto call = [&](const RowGroup& group, int64_t i) { body(group, group.first_row + i); };
  std::atomic<int64_t> next = 0;
  const auto rows_of = [](const RowGroup& group) { return group.num_rows; };
  const auto run = [&](int) { run_group_tasks(groups, next, rows_of, call); };
  if (num_rows * width > serial_elements) {
    pool.run(run);
  } else {
    run(0);
  }
}

}  // namespace quire::cpu
