// From a plan to the arrays that a model's step reads. On a CPU host and device memory are one;
// elsewhere a kernel derives the same arrays, and this says what they must be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/batch.h"
#include "sched/batch_plan.h"

namespace quire {

// The device's state of a row, as far as inputs need it.
struct RowView {
  std::span<const std::vector<int32_t>> block_ids;  // by block table
  int num_computed = 0;                             // tokens in the cache, of a row that decodes
  std::span<const int32_t> next_tokens;             // stand in for kPlaceholderToken
};

// The inputs of the groups that share one block table.
struct TableInputs {
  std::vector<int64_t> slot_mapping;  // [num_tokens]; -1 behind the row's blocks
  // [num_reqs, max_pages]; 0, the padding page, behind a row's blocks and before its window.
  std::vector<int32_t> block_table;
  AttentionBatch attention;  // views of all arrays
};

struct BatchInputs {
  std::vector<int32_t> token_ids;     // [num_tokens]
  std::vector<int32_t> positions;     // [num_tokens]
  std::vector<int32_t> query_start;   // [num_reqs + 1]
  std::vector<int32_t> seq_lens;      // [num_reqs]
  std::vector<int32_t> kv_len_bound;  // [num_reqs]
  std::vector<TableInputs> tables;

  // Fills everything anew; memory is kept from step to step. rows[i] belongs to plan.slices[i];
  // windows: of each block table, 0 for none.
  void build(const BatchPlan& plan, std::span<const RowView> rows, int page_size,
             std::span<const int> windows);

 private:
  void add_slice(const BatchPlan& plan, const SeqSlice& slice, const RowView& row, int page_size,
                 std::span<const int> windows);
};

// The contiguous requests [first, last) of `slices` as one phase.
PhaseRange phase_range(std::span<const SeqSlice> slices, int first, int last);

}  // namespace quire
