// The recorded drafter of tests/engine/recorded_drafter.h on a GPU: the host never reads a
// sequence's progress.
#pragma once

#include <memory>

#include "cuda/base/stream.h"
#include "engine/recorded_drafter.h"

namespace quire::cuda {

// `answers` must outlive the drafter.
Result<std::unique_ptr<Drafter>> make_device_drafter(const testing::RecordedAnswers& answers,
                                                     const DrafterLimits& limits);

// Recorded slots on the device: the prompt and answer of each.
struct RecordedSlots {
  const int32_t* tokens = nullptr;   // [slots, max_tokens]
  const int32_t* lengths = nullptr;  // [slots]
  int max_tokens = 0;
  int num_drafts = 0;
  int vocab_size = 0;
};
void launch_draft(const RecordedSlots& slots, const DraftCall& call, CudaStream& stream);

}  // namespace quire::cuda
