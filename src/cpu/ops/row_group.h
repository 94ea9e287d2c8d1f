// Products of several matrices of one shape with different token rows of the same activations,
// which one parallel region computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/numbers.h"
#include "base/thread_pool.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/quantized_linear.h"

namespace quire::cpu {

// A group: the adjacent token rows that one matrix (PackedLinear or QuantizedLinear) multiplies.
template <class Matrix>
struct MatrixRows {
  const Matrix* w = nullptr;
  int64_t first_row = 0;
  int64_t num_rows = 0;

  int64_t end_row() const { return first_row + num_rows; }
};
using RowGroup = MatrixRows<PackedLinear>;
using QuantizedRowGroup = MatrixRows<QuantizedLinear>;

// Upper bound of the token rows of one call, including the gaps between its groups.
inline constexpr int64_t kMaxGroupedRows = 256;
// Each group begins at a multiple of this number of rows, the rows of an AMX tile. The products
// neither read nor write the rows between groups.
inline constexpr int64_t kGroupAlign = 16;
inline constexpr size_t kMaxGroups = kMaxGroupedRows / kGroupAlign;

// Divides num_rows >= 1 rows into the fewest batches of at most max_rows, so that a batch's sums
// fit into registers. If num_rows is not divisible, the first batches have one row more than the
// others.
class RowBatches {
 public:
  RowBatches(int64_t num_rows, int64_t max_rows)
      : count_(ceil_div(num_rows, max_rows)),
        rows_of_smaller_(num_rows / count_),
        num_larger_(num_rows % count_) {}

  int64_t count() const { return count_; }
  int64_t begin(int64_t idx) const { return idx * rows_of_smaller_ + std::min(idx, num_larger_); }
  int64_t num_rows(int64_t idx) const { return begin(idx + 1) - begin(idx); }

 private:
  int64_t count_;
  int64_t rows_of_smaller_;
  int64_t num_larger_;
};

// Predicts the next part of a thread, so that its weights can be prefetched. Threads take parts in
// turns, so the distance between a thread's parts is usually constant. The prediction is wrong for
// a thread's first part and at the border of a matrix or node, which costs only time. Products of
// few rows must not use the prediction, because memory bandwidth limits them, so a wrong prefetch
// would cost too much.
class NextPart {
 public:
  int64_t after(int64_t part) {
    const int64_t distance = std::max<int64_t>(1, part - last_);
    last_ = part;
    return part + distance;
  }

 private:
  int64_t last_ = 0;
};

// Enlarges a scratch buffer to at least num_bytes.
inline Status grow(int64_t num_bytes, Buffer& buffer) {
  if (static_cast<size_t>(num_bytes) <= buffer.num_bytes()) return {};
  QUIRE_ASSIGN_OR_RETURN(buffer, Buffer::host(static_cast<size_t>(num_bytes)));
  return {};
}

// Calls body(group, part) for the tasks that one thread takes. A task is one part of one group's
// matrix. The thread takes the parts whose panels are on its own node first, then the parts of the
// other nodes. num_parts(group) returns the number of parts in a group.
template <class Matrix, class NumParts, class Body>
void run_group_tasks(std::span<const MatrixRows<Matrix>> groups, NodeTasks& tasks, int thread_idx,
                     const NumParts& num_parts, const Body& body) {
  tasks.for_nodes(thread_idx, [&](int node) {
    size_t g = 0;
    int64_t first_task = 0;  // of group g, in this node's numbering of tasks
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

// Calls body(group, part) for each part of the groups. num_parts(group) returns the number of parts
// in a group. Uses several threads if the groups' rows, with `width` elements each, have more than
// kElementsOnOneThread elements in total.
template <class Matrix, class NumParts, class Body>
void for_group_parts(std::span<const MatrixRows<Matrix>> groups, int64_t width, ThreadPool& pool,
                     const NumParts& num_parts, const Body& body) {
  constexpr int64_t kElementsOnOneThread = 4096;
  int64_t num_rows = 0;
  for (const MatrixRows<Matrix>& group : groups) num_rows += group.num_rows;
  NodeTasks tasks(pool);
  const auto run = [&](int thread_idx) {
    run_group_tasks(groups, tasks, thread_idx, num_parts, body);
  };
  if (num_rows * width > kElementsOnOneThread) {
    pool.run(run);
  } else {
    run(0);
  }
}

// Calls body(group, row) for each row of the groups. Chooses the threads as for_group_parts() does.
template <class Matrix, class Body>
void for_group_rows(std::span<const MatrixRows<Matrix>> groups, int64_t width, ThreadPool& pool,
                    const Body& body) {
  using Group = MatrixRows<Matrix>;
  for_group_parts(
      groups, width, pool, [](const Group& group) { return group.num_rows; },
      [&](const Group& group, int64_t i) { body(group, group.first_row + i); });
}

}  // namespace quire::cpu
