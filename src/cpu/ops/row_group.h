// Products of several matrices of one shape with different rows of the same activations, so that
// one parallel region computes all of them.
#pragma once

#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/quantized_linear.h"

namespace quire::cpu {

// Adjacent rows that one matrix, a PackedLinear or a QuantizedLinear, multiplies.
template <class Matrix>
struct MatrixRows {
  const Matrix* w = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t end_row() const { return first_row + num_rows; }
};
using RowGroup = MatrixRows<PackedLinear>;
using QuantizedRowGroup = MatrixRows<QuantizedLinear>;

// Upper bound of the rows of one call with several groups.
inline constexpr int64_t kMaxGroupedRows = 256;
// Each group begins at a multiple of this, the rows of an AMX tile. Rows of x and out between
// groups are not accessed.
inline constexpr int64_t kGroupAlign = 16;
inline constexpr size_t kMaxGroups = kMaxGroupedRows / kGroupAlign;

// The tasks of a group: each of its row blocks is multiplied by each part of the matrix. Nodes
// divide the parts, because a part's panels lie on one node.
struct GroupTasks {
  int64_t num_parts = 0;
  int64_t num_row_blocks = 1;
};

// A thread's part of the tasks of all groups: calls body(group, part, row_block), the parts of one
// row block after those of another. tasks_of(group) returns its GroupTasks.
template <class Matrix, class TasksOf, class Body>
void run_group_tasks(std::span<const MatrixRows<Matrix>> groups, NodeTasks& tasks, int thread_idx,
                     const TasksOf& tasks_of, const Body& body) {
  tasks.for_nodes(thread_idx, [&](int node) {
    size_t g = 0;
    int64_t first_task = 0;  // of group g, among the tasks of this node
    ThreadPool::Share parts;
    int64_t num_tasks = 0;
    const auto read_group = [&] {
      if (g == groups.size()) return;
      const GroupTasks group = tasks_of(groups[g]);
      parts = tasks.share(node, group.num_parts);
      num_tasks = parts.size() * group.num_row_blocks;
    };
    read_group();
    for (int64_t i = tasks.take(node);; i = tasks.take(node)) {
      while (g < groups.size() && i >= first_task + num_tasks) {
        first_task += num_tasks;
        ++g;
        read_group();
      }
      if (g == groups.size()) return;
      const int64_t task = i - first_task;
      body(groups[g], parts.begin + task % parts.size(), task / parts.size());
    }
  });
}

// Calls body(group, row) for each row of the groups; on several threads if the rows, of `width`
// elements each, have more than `serial_elements`.
template <class Matrix, class Body>
void for_group_rows(std::span<const MatrixRows<Matrix>> groups, int64_t width,
                    int64_t serial_elements, ThreadPool& pool, const Body& body) {
  using Group = MatrixRows<Matrix>;
  int64_t num_rows = 0;
  for (const Group& group : groups) num_rows += group.num_rows;
  NodeTasks tasks(pool);
  const auto rows_of = [](const Group& group) { return GroupTasks{group.num_rows}; };
  const auto run = [&](int thread_idx) {
    run_group_tasks(groups, tasks, thread_idx, rows_of,
                    [&](const Group& group, int64_t i, int64_t /*row_block*/) {
                      body(group, group.first_row + i);
                    });
  };
  if (num_rows * width > serial_elements) {
    pool.run(run);
  } else {
    run(0);
  }
}

}  // namespace quire::cpu
