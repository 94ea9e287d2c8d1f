// One thread per span.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/platform/device_drafter_kernel.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 64;

__global__ void draft_kernel(RecordedSlots slots, RecordedDraftArrays call) {
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= call.num_spans || call.slots[i] < 0) return;
  const int64_t slot = call.slots[i];
  const int num_computed = call.num_computed[slot];
  const int32_t* known = slots.tokens + slot * slots.max_tokens;
  uint64_t luck = (static_cast<uint64_t>(slot) * 1000003 + static_cast<uint64_t>(num_computed)) *
                  0x9E3779B97F4A7C15ULL;
  luck ^= luck >> 29;
  const auto num_right = static_cast<int>(luck % static_cast<uint64_t>(slots.num_drafts + 1));
  int32_t* drafts = call.next_tokens + slot * (slots.num_drafts + 1) + 1;
  for (int k = 0; k < slots.num_drafts; ++k) {
    const int position = num_computed + 1 + k;
    const int32_t token = position < slots.lengths[slot] ? known[position] : 0;
    drafts[k] = k < num_right ? token : (token + 1) % slots.vocab_size;
  }
}

}  // namespace

void launch_draft(const RecordedSlots& slots, const RecordedDraftArrays& call, CudaStream& stream) {
  const int num_blocks = ceil_div(call.num_spans, kThreads);
  QUIRE_LAUNCH(stream, draft_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_blocks), .block = kThreads}), slots,
               call);
}

}  // namespace quire::cuda
