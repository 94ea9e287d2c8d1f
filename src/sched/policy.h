// The scheduler's decisions as functions of plain values.
#pragma once

#include "quire/status.h"
#include "sched/scheduler.h"
#include "sched/sequence.h"

namespace quire {

// Strict order of service: priority, then arrival. It is total and never changes while a sequence
// lives, which is what makes preemption free of livelock: the first in order is nobody's victim.
bool ranks_before(const Sequence& a, const Sequence& b);

// Tokens that the sequence's next step would compute: the known ones that are not scheduled yet, or
// one and the drafts behind it once the sequence decodes. 0 when the last token that it may have is
// certainly in flight, or any token of a constrained one.
int num_tokens_due(const Sequence& seq, int num_drafts);

// Whether sampling reads more of the sequence than its logits: penalties, logit_bias,
// allowed_token_ids, bad_words or min_tokens. A device keeps tables for them, and for fewer
// sequences than may run, because a table is as large as the vocabulary.
bool has_rules(const SamplingSpec& spec);

int num_blocks_for(int num_tokens, int block_size);

// Blocks of a table that a sequence of so many tokens holds at most: a window leaves blocks behind
// between steps, so it holds those of the window and of one step.
int max_blocks_held(const SchedulerConfig& config, const KvTableConfig& table, int num_tokens);

// Whether `seq` can be served by an otherwise empty engine; if not, why.
Status check_admissible(const Sequence& seq, const SchedulerConfig& config);

}  // namespace quire
