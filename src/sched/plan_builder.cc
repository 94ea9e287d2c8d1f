#include "sched/plan_builder.h"

#include <algorithm>

namespace quire {
namespace {

void append_row(SeqRecord& rec, BatchPlan& plan) {
  const Sequence& seq = *rec.seq;
  plan.rows_added.push_back({.row = seq.row,
                             .seq_id = seq.id,
                             .token_ids = seq.token_ids,
                             .num_prompt_tokens = seq.num_prompt_tokens,
                             .sampling = seq.sampling});
  rec.added_in_step = false;
}

void append_blocks(SeqRecord& rec, BatchPlan& plan) {
  const Sequence& seq = *rec.seq;
  const int first = rec.num_announced_blocks;
  if (first == static_cast<int>(seq.block_ids.size())) return;
  plan.block_appends.push_back({.row = seq.row,
                                .first = first,
                                .block_ids = {seq.block_ids.begin() + first, seq.block_ids.end()}});
  rec.num_announced_blocks = static_cast<int>(seq.block_ids.size());
}

// Log probabilities of the prompt go out with the first output token: later there are none to want,
// when the prompt is computed anew after a preemption.
int num_prompt_logprobs_wanted(const Sequence& seq, int first) {
  if (seq.num_output_tokens() > 0 || first >= seq.num_prompt_tokens) return -1;
  return seq.sampling->params->prompt_logprobs.value_or(-1);
}

void append_slice(SeqRecord& rec, BatchPlan& plan) {
  const Sequence& seq = *rec.seq;
  const int num_known = static_cast<int>(seq.token_ids.size());
  const int end = seq.num_scheduled;
  const int first = end - rec.step_tokens;
  plan.slices.push_back({.seq_id = seq.id,
                         .row = seq.row,
                         .num_computed = first,
                         .num_tokens = rec.step_tokens,
                         .first_token = plan.num_tokens(),
                         .samples = rec.step_samples,
                         .num_prompt_logprobs = num_prompt_logprobs_wanted(seq, first)});
  const int known_end = std::min(end, num_known);
  if (first < known_end) {
    plan.token_ids.insert(plan.token_ids.end(), seq.token_ids.begin() + first,
                          seq.token_ids.begin() + known_end);
  }
  // Only the last token can be unknown yet: it is the one that the step before this samples.
  if (end > num_known) plan.token_ids.push_back(kPlaceholderToken);
  if (rec.added_in_step) append_row(rec, plan);
  append_blocks(rec, plan);
  rec.step_tokens = 0;
  rec.step_committed = false;
}

}  // namespace

BatchPlan build_plan(uint64_t step_id, std::span<SeqRecord* const> running) {
  BatchPlan plan;
  plan.step_id = step_id;
  plan.slices.reserve(running.size());
  plan.token_ids.reserve(running.size());
  for (SeqRecord* rec : running) {
    if (rec->step_tokens == 1) append_slice(*rec, plan);
  }
  plan.num_decode = static_cast<int>(plan.slices.size());
  for (SeqRecord* rec : running) {
    if (rec->step_tokens > 1) append_slice(*rec, plan);
  }
  return plan;
}

}  // namespace quire
