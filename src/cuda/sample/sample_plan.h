// Host side of a step's sampling: which kernels sample which logits row, and which rule tables a
// sequence holds. The host decides it alone, so that a step launches no kernel that it does not
// need, and pays for penalties, filters and log probabilities only for the rows that ask for them.
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
  int offset = 0;     // drafts of its span before it: the span's rows lie one after another
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

  // The row's sequence leaves; its table is free for the next.
  void remove(int row);
  // A sequence enters `row`, in place of any before. Returns its rule table, or -1 where `flags`
  // (of its RowState) ask for none. The scheduler admits no more sequences with rules than there
  // are tables.
  int add(int row, const RowState& state);
  // Plans the next step, which brings a token at least of each span: one counts towards min_tokens.
  // The kernels count exactly, so a row that stays in kRules for longer is only slower.
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
