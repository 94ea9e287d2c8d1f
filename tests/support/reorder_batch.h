// Which requests of a step go to the decode kernel, and in which order all of them lie.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/batch.h"

namespace quire::testing {

struct BatchOrder {
  std::vector<int32_t> order;  // new place -> old index; a permutation
  PhaseRange decode;           // of the new order
  PhaseRange prefill;
};

// Decode takes the requests of one query length, at most max_decode_q_len (1 + drafted tokens);
// among several short lengths the one with the most requests, and of equals the longer. All others
// are prefill: a ragged range never goes to a decode kernel. Each range keeps its arrival order.
// q_lens and kv_lens (upper bounds) are [num_reqs]; a q_len of 0 is never decode.
BatchOrder reorder_batch(std::span<const int32_t> q_lens, std::span<const int32_t> kv_lens,
                         int max_decode_q_len);

}  // namespace quire::testing
