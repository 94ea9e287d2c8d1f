// The states that a table of recurrent states keeps. A state is large and few fit, so a sequence
// keeps only those with which a later prompt may begin.
#pragma once

#include "sched/kv_table.h"
#include "sched/sequence.h"

namespace quire {

// While a long prompt runs, the newest two states at multiples of this number of tokens are kept,
// so that a preempted prompt loses little.
inline constexpr int kTokensBetweenStates = 512;

// Whether a chunk of known tokens writes the state of a block that it fills; last_block has the
// chunk's last token.
bool writes_state(const Sequence& seq, int block, int last_block, int block_size);

// Called when the sequence has filled the block after `block`. Drops the states that are no longer
// kept: the state of `block`, unless a prompt or its history ends there, and older ones of a long
// prompt.
void drop_states_behind(const SeqRecord& rec, const SeqBlocks& blocks, int block, int block_size,
                        KvTable& table);

// Releases the states of a sequence that ends or is preempted. The newest state of a full block
// stays cached, and is overwritten after the older ones.
void release_states(const SeqRecord& rec, const SeqBlocks& blocks, int block_size, KvTable& table);

}  // namespace quire
