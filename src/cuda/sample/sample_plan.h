// Host side of a step's sampling: decides which kernels sample which logits row, and which rule
// table a sequence holds. The host decides alone, so that a step launches only kernels that it
// needs, and pays for penalties, filters and log probabilities only for the rows that ask for them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/sample/row_state.h"
#include "sched/batch_plan.h"

namespace quire::cuda {

// One logits row of a step.
struct LogitsRowUse {
  int row = -1;       // the sequence's row of state; -1: padding
  int offset = 0;     // drafts of its span before it; a span's rows are consecutive
  int mask_idx = -1;  // of the step's token masks; -1: none
};

// One step's sampling.
struct SamplePlan {
  std::vector<SampleRow> rows;                    // one per logits row
  std::array<int, kNumSamplePasses> counts = {};  // rows of each pass
  bool is_random = false;                         // some row of kOnePass is not greedy
  bool has_logprobs = false;                      // some row wants log probabilities
  bool has_masks = false;

  int num_rows() const { return static_cast<int>(rows.size()); }
  int num_rows_of(SamplePass pass) const { return counts[static_cast<size_t>(pass)]; }
  // Whether the kernels need `rows`: otherwise one pass samples all of them, without masks.
  bool is_mixed() const;
};

// Host copy of each slot's sampling state: its pass, its remaining min_tokens and its rule table.
class SampledRows {
 public:
  SampledRows(int num_rows, int num_tables);

  // Removes the row's sequence and frees its table.
  void remove(int row);
  // Adds a sequence to `row` in place of any earlier one. Returns its rule table, or -1 if `flags`
  // (of its RowState) need none. The scheduler admits at most as many sequences with rules as there
  // are tables.
  int add(int row, const RowState& state);
  // Plans the next step. Each span yields at least one token, and the plan counts one towards
  // min_tokens. The kernels count exactly, so a row that stays in kRules for longer is only slower.
  SamplePlan plan(std::span<const LogitsRowUse> rows);

 private:
  struct Row {
    SamplePass pass = SamplePass::kOnePass;  // pass after min_tokens is reached
    int min_tokens_left = 0;                 // while positive: kRules
    int table = -1;
    bool is_random = false;
    bool wants_logprobs = false;
  };

  std::vector<Row> rows_;
  std::vector<int> free_tables_;
};

}  // namespace quire::cuda
