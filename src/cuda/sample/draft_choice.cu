// Chooses drafts from the logits of a drafter, as DraftChooser does on a CPU.
//
// The grid for the most likely drafts is (rows, slices of a row), as in one_pass.cu, so that one
// row of a large vocabulary occupies several SMs. For sampled drafts there is one thread block per
// row, after filter.cu has computed the row's distribution.
#include "cuda/base/launch.h"
#include "cuda/sample/gumbel.cuh"

namespace quire::cuda {
namespace {

constexpr int kDraftThreads = 256;
constexpr int kSampleThreads = 1024;

__device__ int32_t target_id(const DraftLogits& call, int32_t draft_id) {
  return call.target_ids == nullptr ? draft_id : call.target_ids[draft_id];
}

// The GPU verifies every draft, so each row must yield a valid token: draft id 0 if the logits are
// invalid.
__device__ void store_draft(const SlotTables& tables, const DraftLogits& call, int slot,
                            int32_t draft_id) {
  tables.next_tokens[static_cast<int64_t>(slot) * tables.q_len + 1 + call.draft_idx] =
      target_id(call, draft_id);
}

__global__ void __launch_bounds__(kDraftThreads)
    most_likely_drafts_kernel(SlotTables tables, DraftLogits call, SlicePick* picks,
                              uint32_t* arrivals) {
  const auto i = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const auto count = static_cast<int>(gridDim.y);
  const int slot = call.slots[i];
  if (slot < 0) return;
  const LogitsRow row(call.logits, call.width, i);
  const int32_t first = slice * (kSliceSize / 4);
  const int32_t end = min(first + kSliceSize / 4, row.end_quad());
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

// Writes the probabilities of the row's tokens in F32, and at the same time samples a token from
// them, as sample_draft() does. All of `probs` is 0 before the call.
__device__ int32_t sample_draft(const DraftLogits& call, const LogitsRow& row, const RowCut& cut,
                                const TokenNoise& noise, float* probs) {
  double mine = 0;
  const auto add = [&](int32_t q, const Quad& quad) {
#pragma unroll
    for (int j = 0; j < 4; ++j) mine += weight_of(cut, quad.x[j], q * 4 + j);
  };
  for_each_quad(row, 0, row.end_quad(), add);
  const double total = block_sum(mine);
  Winner winner;
  for_each_quad<1>(row, 0, row.end_quad(), [&](int32_t q, const Quad& quad) {
    for (int j = 0; j < 4; ++j) {
      const auto prob = static_cast<float>(weight_of(cut, quad.x[j], q * 4 + j) / total);
      if (!(prob > 0)) continue;
      probs[target_id(call, q * 4 + j)] = prob;
      double u[4];
      noise.uniform_quad(static_cast<uint32_t>(q), u);
      winner.add(static_cast<double>(prob) / -log(u[j]), q * 4 + j);
    }
  });
  return block_winner(winner).token_id;
}

// The distribution of a row with invalid logits stays 0, so that its draft is not compared.
__global__ void __launch_bounds__(kSampleThreads)
    sample_drafts_kernel(SlotTables tables, DraftLogits call, const RowCut* cuts, float* probs) {
  const auto i = static_cast<int>(blockIdx.x);
  const int slot = call.slots[i];
  if (slot < 0) return;
  const int64_t num_drafts = tables.q_len - 1;
  float* mine = probs + (slot * num_drafts + call.draft_idx) * tables.vocab_size;
  for (auto id = static_cast<int>(threadIdx.x); id < tables.vocab_size; id += kSampleThreads) {
    mine[id] = 0;
  }
  __syncthreads();
  int32_t draft_id = 0;
  if (cuts[i].status == RowStatus::kOk) {
    const SlotState& state = tables.states[slot];
    const DraftNoise noise(state.seed, static_cast<uint64_t>(state.position));
    draft_id = sample_draft(call, LogitsRow(call.logits, call.width, i), cuts[i],
                            noise.draft(static_cast<size_t>(call.draft_idx)), mine);
  }
  if (threadIdx.x == 0) store_draft(tables, call, slot, draft_id);
}

}  // namespace

void launch_sample_drafts(const SlotTables& tables, const DraftLogits& call, const RowCut* cuts,
                          float* probs, CudaStream& stream) {
  const LaunchShape shape = {.grid = static_cast<unsigned>(call.num_spans),
                             .block = kSampleThreads};
  QUIRE_LAUNCH(stream, sample_drafts_kernel, shape, tables, call, cuts, probs);
}

void launch_most_likely_drafts(const SlotTables& tables, const DraftLogits& call, SlicePick* picks,
                               uint32_t* arrivals, CudaStream& stream) {
  const LaunchShape shape = {.grid = slices_grid(call.num_spans, call.width),
                             .block = kDraftThreads};
  QUIRE_LAUNCH(stream, most_likely_drafts_kernel, shape, tables, call, picks, arrivals);
}

}  // namespace quire::cuda
