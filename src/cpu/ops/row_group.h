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

// Makes a scratch buffer at least as large.
inline Status grow(int64_t num_bytes, Buffer& buffer) {
  if (static_cast<size_t>(num_bytes) <= buffer.num_bytes()) return {};
  QUIRE_ASSIGN_OR_RETURN(buffer, Buffer::host(static_cast<size_t>(num_bytes)));
  return {};
}

// A thread's part of the tasks of all groups, which are the parts of their matrices: calls
// body(group, part). Nodes divide the parts, because a part's panels lie on one node.
// num_parts(group) returns the number of a group's parts.
template <class Matrix, class NumParts, class Body>
void run_group_tasks(std::span<const MatrixRows<Matrix>> groups, NodeTasks& tasks, int thread_idx,
                     const NumParts& num_parts, const Body& body) {
  tasks.for_nodes(thread_idx, [&](int node) {
    size_t g = 0;
    int64_t first_task = 0;  // of group g, among the tasks of this node
    ThreadPool::Share parts;
    const auto read_group = [&] {
      if (g < groups.size()) parts = tasks.share(node, num_parts(groups[g]));
    };
    read_group();
    for (int64_t i = tasks.take(node);; i = tasks.take(node)) {
      while (g < groups.size() && i >= first_task + parts.size()) {
        first_task += parts.size();
        ++g;
        read_group();
      }
      if (g == groups.size()) return;
      body(groups[g], parts.begin + i - first_task);
    }
  });
}

// Calls body(group, row) for each row of the groups, of `width` elements; on several threads if
// there are enough elements.
template <class Matrix, class Body>
void for_group_rows(std::span<const MatrixRows<Matrix>> groups, int64_t width, ThreadPool& pool,
                    const Body& body) {
  constexpr int64_t kElementsOnOneThread = 4096;
  using Group = MatrixRows<Matrix>;
  int64_t num_rows = 0;
  for (const Group& group : groups) num_rows += group.num_rows;
  NodeTasks tasks(pool);
  const auto rows_of = [](const Group& group) { return group.num_rows; };
  const auto run = [&](int thread_idx) {
    run_group_tasks(groups, tasks, thread_idx, rows_of,
                    [&](const Group& group, int64_t i) { body(group, group.first_row + i); });
  };
  if (num_rows * width > kElementsOnOneThread) {
    pool.run(run);
  } else {
    run(0);
  }
}

}  // namespace quire::cpu
