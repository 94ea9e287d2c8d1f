#include "sched/batch_plan.h"

#include <algorithm>

#include "sched/policy.h"
#include "sched/scheduler.h"

namespace quire {
namespace {

void append_slot(SeqRecord& rec, BatchPlan& plan) {
  const Sequence& seq = *rec.seq;
  plan.slots_added.push_back({.slot = seq.slot,
                              .seq_id = seq.id,
                              .token_ids = seq.token_ids,
                              .num_prompt_tokens = seq.num_prompt_tokens,
                              .sampling = seq.sampling});
  rec.added_in_step = false;
}

void append_blocks(Sequence& seq, BatchPlan& plan) {
  for (size_t t = 0; t < seq.tables.size(); ++t) {
    SeqBlocks& blocks = seq.tables[t];
    const int first = blocks.num_sent;
    if (first == static_cast<int>(blocks.ids.size())) continue;
    plan.block_appends.push_back({.slot = seq.slot,
                                  .table = static_cast<int>(t),
                                  .first = first,
                                  .block_ids = {blocks.ids.begin() + first, blocks.ids.end()}});
    blocks.num_sent = static_cast<int>(blocks.ids.size());
  }
}

// Log probabilities of the prompt are returned with the first output token. When the prompt is
// computed again after a preemption, they have already been returned.
int num_prompt_logprobs_wanted(const Sequence& seq, int first) {
  if (seq.num_output_tokens() > 0 || first >= seq.num_prompt_tokens) return -1;
  return seq.sampling->params->prompt_logprobs.value_or(-1);
}

// A constrained sequence verifies the drafts that the host has received.
int num_drafts_of(const Sequence& seq, int num_step_drafts) {
  return seq.is_constrained ? std::min(num_step_drafts, static_cast<int>(seq.next_drafts.size()))
                            : num_step_drafts;
}

void append_token_ids(const SeqSpan& span, const Sequence& seq, BatchPlan& plan) {
  if (span.decodes) {
    const size_t first = plan.token_ids.size();
    plan.token_ids.resize(first + static_cast<size_t>(span.num_tokens), kPlaceholderToken);
    if (!seq.is_constrained) return;
    std::copy_n(seq.next_drafts.begin(), span.num_drafts,
                plan.token_ids.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  } else {
    const auto first = seq.token_ids.begin() + span.num_computed;
    plan.token_ids.insert(plan.token_ids.end(), first, first + span.num_tokens);
  }
}

int32_t token_after(const Sequence& seq, int num_tokens) {
  const auto end = static_cast<size_t>(num_tokens);
  return end < seq.token_ids.size() ? seq.token_ids.get()[end] : 0;
}

void append_span(SeqRecord& rec, const SchedulerConfig& config, BatchPlan& plan) {
  Sequence& seq = *rec.seq;
  const int first = seq.num_scheduled - rec.step_tokens;
  const bool decodes = first >= seq.num_prefill;
  const int num_blocks = static_cast<int>(seq.tables[0].ids.size());
  // `first` is an upper bound and may be beyond the sequence's blocks, which cover all positions
  // that the sequence can reach (num_blocks_of() in block_tables.cc).
  const int last = num_blocks * config.block_size - 1;
  plan.spans.push_back({.seq_id = seq.id,
                        .slot = seq.slot,
                        .decodes = decodes,
                        .num_computed = decodes ? std::min(first, last) : first,
                        .num_tokens = rec.step_tokens,
                        .first_token = plan.num_tokens(),
                        .num_blocks = num_blocks,
                        .samples = rec.step_samples,
                        .token_after = decodes ? 0 : token_after(seq, first + rec.step_tokens),
                        .num_drafts = decodes ? num_drafts_of(seq, plan.decode_q_len - 1) : 0,
                        .num_prompt_logprobs = num_prompt_logprobs_wanted(seq, first)});
  append_token_ids(plan.spans.back(), seq, plan);
  seq.next_drafts.clear();
  if (rec.added_in_step) append_slot(rec, plan);
  append_blocks(seq, plan);
  rec.step_tokens = 0;
  rec.step_committed = false;
}

}  // namespace

BatchPlan build_plan(uint64_t step_id, const SchedulerConfig& config, int num_drafts,
                     std::span<SeqRecord* const> running) {
  BatchPlan plan;
  plan.step_id = step_id;
  plan.decode_q_len = 1 + num_drafts;
  plan.spans.reserve(running.size());
  plan.token_ids.reserve(running.size() * static_cast<size_t>(plan.decode_q_len));
  // Includes chunks of prompts that have the length of a decode.
  for (SeqRecord* rec : running) {
    if (rec->step_tokens == plan.decode_q_len) append_span(*rec, config, plan);
  }
  plan.num_decode = static_cast<int>(plan.spans.size());
  // append_span() sets step_tokens to 0, so the spans already appended are skipped here.
  for (SeqRecord* rec : running) {
    if (rec->step_tokens > 0) append_span(*rec, config, plan);
  }
  const auto num_sampling = std::ranges::count(plan.spans, true, &SeqSpan::samples);
  plan.max_next_drafts = num_step_drafts(config, static_cast<int>(num_sampling));
  return plan;
}

}  // namespace quire
