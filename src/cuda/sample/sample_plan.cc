#include "cuda/sample/sample_plan.h"

#include <algorithm>

#include "base/check.h"

namespace quire::cuda {
namespace {

// Flags that apply to every token. kHasStops applies only until min_tokens is reached.
constexpr uint32_t kLastingRules = kHasAllowed | kHasBadWords | kHasBias | kHasPenalties;

SamplePass lasting_pass(const RowState& state) {
  if ((state.flags & kLastingRules) != 0) return SamplePass::kRules;
  if (state.temperature < kGreedyBelow) return SamplePass::kOnePass;
  const bool is_filtered = state.top_k >= 1 || state.top_p < 1.0F || state.min_p > 0.0F;
  return is_filtered ? SamplePass::kFilter : SamplePass::kOnePass;
}

}  // namespace

bool SamplePlan::is_mixed() const {
  return has_masks || std::ranges::find(counts, num_rows()) == counts.end();
}

SampledRows::SampledRows(int num_rows, int num_tables) : rows_(static_cast<size_t>(num_rows)) {
  for (int table = num_tables - 1; table >= 0; --table) free_tables_.push_back(table);
}

void SampledRows::remove(int row) {
  Row& old = rows_[static_cast<size_t>(row)];
  if (old.table >= 0) free_tables_.push_back(old.table);
  old = {};
}

int SampledRows::add(int row, const RowState& state) {
  remove(row);
  Row& added = rows_[static_cast<size_t>(row)];
  added.pass = lasting_pass(state);
  added.is_random = state.temperature >= kGreedyBelow;
  added.wants_logprobs = state.num_logprobs >= 0;
  if ((state.flags & kHasStops) != 0) added.min_tokens_left = state.min_tokens - state.num_output;
  if (state.flags == 0) return -1;
  QUIRE_CHECK(!free_tables_.empty(),
              "[sample] rule tables are exhausted; the scheduler must admit at most max_rule_seqs "
              "sequences with rules");
  added.table = free_tables_.back();
  free_tables_.pop_back();
  return added.table;
}

SamplePlan SampledRows::plan(std::span<const LogitsRowUse> rows) {
  SamplePlan plan;
  plan.rows.resize(rows.size());
  // Padding rows take the first sequence's pass, so that they add no launch.
  SamplePass padding = SamplePass::kOnePass;
  for (size_t i = rows.size(); i-- > 0;) {
    if (rows[i].row < 0) continue;
    Row& row = rows_[static_cast<size_t>(rows[i].row)];
    const bool has_mask = rows[i].mask_idx >= 0;
    const bool has_rules = has_mask || row.min_tokens_left > 0;
    const SamplePass pass = has_rules ? SamplePass::kRules : row.pass;
    // All rows of a span use one pass. The loop runs backwards, so it counts the step at the span's
    // first row.
    if (row.min_tokens_left > 0 && rows[i].offset == 0) --row.min_tokens_left;
    plan.rows[i] = {.pass = pass, .mask_idx = rows[i].mask_idx};
    plan.is_random |= pass == SamplePass::kOnePass && row.is_random;
    plan.has_logprobs |= row.wants_logprobs;
    plan.has_masks |= has_mask;
    padding = pass;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].row < 0) plan.rows[i] = {.pass = padding, .mask_idx = -1};
    ++plan.counts[static_cast<size_t>(plan.rows[i].pass)];
  }
  return plan;
}

}  // namespace quire::cuda
