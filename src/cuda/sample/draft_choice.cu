// Chooses drafts from the logits of a drafter, as DraftChooser does on a CPU.
//
// Grid of the most likely drafts: (rows, slices of a row), as in one_pass.cu. With the vocabulary
// of a large model, one row occupies several SMs.
#include "cuda/base/launch.h"
#include "cuda/sample/logits.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 256;

// A GPU verifies every draft, so each row gives a valid token: id 0 if the logits are broken.
__device__ void store_draft(const SlotTables& tables, const DraftLogits& call, int slot,
                            int32_t draft_id) {
  const int32_t token_id = call.target_ids == nullptr ? draft_id : call.target_ids[draft_id];
  tables.next_tokens[static_cast<int64_t>(slot) * tables.q_len + 1 + call.draft_idx] = token_id;
}

__global__ void __launch_bounds__(kThreads)
    most_likely_drafts_kernel(SlotTables tables, DraftLogits call, SlicePick* picks,
                              uint32_t* arrivals) {
  const auto i = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const auto count = static_cast<int>(gridDim.y);
  const int slot = call.slots[i];
  if (slot < 0) return;
  const LogitsRow row(call.logits, call.width, i);
  const int32_t first = slice * (kSliceSize / 4);
  const int32_t end = min(first + kSliceSize / 4, row.num_quads());
  const LargestLogit mine = block_largest(row, first, end);
  if (threadIdx.x != 0) return;
  SlicePick* row_picks = picks + static_cast<int64_t>(i) * count;
  row_picks[slice] = {0, mine.logit, mine.token_id, mine.nan_id, 0};
  if (!is_last_to_arrive(arrivals[i], count)) return;
  LargestLogit largest;
  for (int s = 0; s < count; ++s) {
    largest.merge(row_picks[s].largest, row_picks[s].token_id, row_picks[s].nan_id);
  }
  store_draft(tables, call, slot, largest.status() == RowStatus::kOk ? largest.token_id : 0);
}

}  // namespace

void launch_most_likely_drafts(const SlotTables& tables, const DraftLogits& call, SlicePick* picks,
                               uint32_t* arrivals, CudaStream& stream) {
  const LaunchShape shape = {.grid = slices_grid(call.num_spans, call.width), .block = kThreads};
  QUIRE_LAUNCH(stream, most_likely_drafts_kernel, shape, tables, call, picks, arrivals);
}

}  // namespace quire::cuda
