// The scheduler's decisions as functions of plain values.
#pragma once

#include "quire/status.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"

namespace quire {

// Strict total order of service: priority, then arrival. It never changes while a sequence exists,
// so preemption cannot cause a livelock: the first sequence in order is never a victim. Sequences
// of one priority cannot starve each other; an endless stream of more urgent sequences keeps the
// less urgent ones waiting.
bool ranks_before(const Sequence& a, const Sequence& b);

// Tokens that the sequence's next step would compute: the known tokens that are not yet scheduled,
// or, once the sequence decodes, one token and its drafts. 0 if the steps in flight certainly reach
// max_total_tokens, or if any step of a constrained sequence is in flight.
int num_tokens_due(const Sequence& seq, int num_drafts);

// Returns the number of drafts that a step verifies per decoding sequence.
int num_step_drafts(const SchedulerConfig& config, int num_decoding);

// Returns whether the sequence has rules, which change logits: penalties, logit_bias,
// allowed_token_ids, bad_words or min_tokens. The device keeps a rule table for each such sequence.
// It has fewer tables than slots, because a table is as large as the vocabulary.
bool has_rules(const SamplingSpec& spec);

int num_blocks_for(int num_tokens, int block_size);

// KV slots that a sequence needs while its first num_tokens tokens are scheduled: one per token,
// and the slots after them that a drafter writes. No model reads its last token, which needs none.
int max_kv_slots(const SchedulerConfig& config, const Sequence& seq, int num_tokens);

// Upper bound of the states that a sequence holds while a chunk of its prompt runs: 2 in its
// window, 2 at intervals, 3 at the ends of the prompt, of its history and of a branch, 1 at the end
// of the chunk, and 2 for drafts. Two steps in flight of a decoding sequence hold fewer.
inline constexpr int kMaxStatesHeld = 2 + 2 + 3 + 1 + 2;

// Upper bound of the blocks of a table that a sequence of num_tokens tokens holds. With a window,
// old blocks are freed between steps. The bound then has the blocks of the window, of one step, and
// of the drafts after it.
int max_blocks_held(const SchedulerConfig& config, const KvTableConfig& table, int num_tokens);

// Ok when an otherwise empty engine can serve `seq`; otherwise the error gives the reason.
Status check_servable(const Sequence& seq, const SchedulerConfig& config);

}  // namespace quire
