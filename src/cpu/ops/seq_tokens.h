// The tokens of one sequence in a step of an operation on states.
#pragma once

#include <cstdint>

#include "ops/state_ops.h"

namespace quire::cpu {

struct SeqTokens {
  int64_t first_row = 0;  // the row of the step that has token `begin`
  int begin = 0;
  int end = 0;
  const int32_t* pages = nullptr;  // the page of each block

  int64_t row_of(int token) const { return first_row + token - begin; }
};

inline SeqTokens tokens_of(const StatePages& states, int seq) {
  const int32_t first = states.query_start[seq];
  const int count = states.query_start[seq + 1] - first;
  const int end = states.seq_lens[seq];
  return {first, end - count, end, states.page_table + seq * states.max_pages};
}

}  // namespace quire::cpu
