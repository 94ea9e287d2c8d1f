// The kernel of the recorded drafter on a GPU.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"

namespace quire::cuda {

// Recorded slots on the device: the prompt and output of each.
struct RecordedSlots {
  const int32_t* tokens = nullptr;   // [slots, max_tokens]
  const int32_t* lengths = nullptr;  // [slots]
  int max_tokens = 0;
  int num_drafts = 0;
  int vocab_size = 0;
};

// The arrays of a CudaDraftCall, whose header device code does not include: it uses simdjson and
// fmt.
struct RecordedDraftArrays {
  const int32_t* slots = nullptr;  // [num_spans]
  int num_spans = 0;
  const int32_t* num_computed = nullptr;
  int32_t* next_tokens = nullptr;
};
void launch_draft(const RecordedSlots& slots, const RecordedDraftArrays& call, CudaStream& stream);

}  // namespace quire::cuda
