// From a plan to the arrays that a model's step reads. On a CPU host and device memory are one;
// elsewhere a kernel derives the same arrays, and this says what they must be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/batch.h"
#include "sched/batch_plan.h"

namespace quire {

// What the device keeps of a row from step to step, as far as inputs need it.
struct RowView {
  std::span<const int32_t> block_ids;
  int32_t last_token = 0;  // stands in for kPlaceholderToken
};

struct BatchInputs {
  std::vector<int32_t> token_ids;     // [num_tokens]
  std::vector<int32_t> positions;     // [num_tokens]
  std::vector<int64_t> slot_mapping;  // [num_tokens]
  std::vector<int32_t> query_start;   // [num_reqs + 1]
  std::vector<int32_t> seq_lens;      // [num_reqs]
  std::vector<int32_t> block_table;   // [num_reqs, max_pages]
  AttentionBatch attention;           // views of the above

  // Fills everything anew; memory is kept from step to step. rows[i] belongs to plan.slices[i].
  void build(const BatchPlan& plan, std::span<const RowView> rows, int page_size);

 private:
  void add_slice(const BatchPlan& plan, const SeqSlice& slice, const RowView& row, int page_size);
};

// The contiguous requests [first, last) of `slices` as one phase.
PhaseRange phase_range(std::span<const SeqSlice> slices, int first, int last);

}  // namespace quire
