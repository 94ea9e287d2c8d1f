// Splits the requests of a step into decode and prefill, and orders them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"

namespace quire::testing {

struct BatchOrder {
  std::vector<int32_t> order;  // new index -> old index; a permutation
  PhaseRange decode;           // in the new order
  PhaseRange prefill;
};

// Decode takes the requests of one query length of at most max_decode_q_len (1 + drafted tokens):
// the length with the most requests, and the longer one of equals. All other requests are prefill,
// because decode kernels do not take ragged ranges. Each range keeps the order of arrival. q_lens
// and kv_lens (upper bounds) are [num_reqs]. A request with a q_len of 0 is never decode.
BatchOrder reorder_batch(std::span<const int32_t> q_lens, std::span<const int32_t> kv_lens,
                         int max_decode_q_len);

}  // namespace quire::testing
