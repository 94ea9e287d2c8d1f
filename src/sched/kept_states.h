// Decides which blocks of a sequence have a recurrent state, and which cached states are dropped. A
// state is large and few fit, so a sequence keeps only states with which a later prompt may begin:
// at the end of its prompt, before the prompt's last message, where other prompts have branched
// off, and at the end of its output.
#pragma once

#include <span>

#include "sched/kv_table.h"
#include "sched/sequence.h"

namespace quire {

// Returns whether a chunk of known tokens writes the state of `block`, which it fills. last_block
// has the chunk's last token.
bool writes_state(const SchedulerConfig& config, const SeqRecord& rec, int block, int last_block);

// Called before the sequence releases a block that it no longer reads. Uncaches the block's state,
// unless a later prompt may begin there. A prompt also keeps its two newest interval states.
void release_state_of_block(const SchedulerConfig& config, const SeqBlocks& blocks, int block,
                            SeqRecord& rec, KvTable& table);

// `states`: the cached states before the beginning of a new sequence, oldest first. The first may
// belong to a system prompt of many conversations, and the last precedes the newest message. The
// others serve only prompts that leave the conversation earlier. They are evicted before other
// states, so that a paused conversation stays cached during many turns of other conversations.
void supersede_states(std::span<const int32_t> states, KvTable& table);

// Releases the states of a sequence that ends or is preempted. Of the full blocks whose tokens the
// request has received, the newest state stays cached, and is overwritten after the older ones.
void release_states(const SchedulerConfig& config, const SeqBlocks& blocks, SeqRecord& rec,
                    KvTable& table);

}  // namespace quire
