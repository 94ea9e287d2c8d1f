// Samples greedily, or randomly over the whole vocabulary.
//
// Grid: (rows, slices of a row). Each thread block reads its slice once. The thread block of a row
// that finishes last chooses among the slices' picks, in slice order. If each rank has a part of
// the vocabulary, that thread block stores the best pick, and one thread per row chooses among the
// picks of all ranks.
#include "cuda/base/launch.h"
#include "cuda/sample/gumbel.cuh"

namespace quire::cuda {
namespace {

constexpr int kPassThreads = 256;

// The pass over the logits also yields the largest one. A logit of -infinity has score -infinity
// and never wins.
__device__ SlicePick sample_slice(const LogitsRow& row, int32_t first, int32_t end,
                                  const SlotState& state) {
  LargestLogit mine;
  const GumbelParams params(state, 0.0F);
  const Winner winner = sample_gumbel_max(
      row, first, end, params,
      [&](int32_t q, const Quad& quad) {
#pragma unroll
        for (int j = 0; j < 4; ++j) mine.add(quad.x[j], q * 4 + j);
      },
      [](float, int32_t) { return true; });
  const LargestLogit largest = block_largest(mine);
  return {winner.score, largest.logit, winner.token_id, largest.nan_id, 0};
}

// The best of `count` picks, `stride` apart. Runs on one thread, because there are few.
__device__ SlicePick best_pick(const SlicePick* picks, int count, int64_t stride) {
  Winner winner;
  LargestLogit largest;
  for (int s = 0; s < count; ++s) {
    const SlicePick pick = picks[s * stride];
    winner.add(pick.score, pick.token_id);
    largest.merge(pick.largest, pick.token_id, pick.nan_id);
  }
  return {winner.score, largest.logit, winner.token_id, largest.nan_id, 0};
}

__device__ void store_pick(const SlicePick& pick, int64_t position, RowResult& result) {
  LargestLogit largest;
  largest.merge(pick.largest, pick.token_id, pick.nan_id);
  store_result(largest.status(), position, pick.token_id, pick.nan_id, result);
}

// best: [num_rows], the best tokens of the part; null: the part is the whole vocabulary, and the
// rows are sampled.
template <bool kRandom>
__global__ void __launch_bounds__(kPassThreads)
    one_pass_kernel(SlotTables tables, SampleCall call, VocabularyPart part, SlicePick* picks,
                    uint32_t* arrivals, SlicePick* best) {
  const auto i = static_cast<int>(blockIdx.x);
  const auto slice = static_cast<int>(blockIdx.y);
  const auto count = static_cast<int>(gridDim.y);
  if (!is_of_pass(call, i, SamplePass::kOnePass)) return;
  if (call.slots[i] < 0) {
    if (slice == 0 && threadIdx.x == 0) store_padding(call.results[i]);
    return;
  }
  const LogitsRow row(call.logits, part.width, i, part.first_id);
  const int32_t first = row.first_quad() + slice * (kSliceSize / 4);
  const int32_t end = min(first + kSliceSize / 4, row.end_quad());
  const SlotState state = state_at(tables, call, i);
  SlicePick pick;
  if (kRandom && state.temperature >= kGreedyBelow) {
    pick = sample_slice(row, first, end, state);
  } else {
    const LargestLogit largest = block_largest(row, first, end);
    pick = {static_cast<double>(largest.logit), largest.logit, largest.token_id, largest.nan_id, 0};
  }
  if (threadIdx.x != 0) return;
  SlicePick* row_picks = picks + static_cast<int64_t>(i) * count;
  row_picks[slice] = pick;
  if (!is_last_to_arrive(arrivals[i], count)) return;
  pick = best_pick(row_picks, count, 1);
  if (best != nullptr) {
    best[i] = pick;
  } else {
    store_pick(pick, state.position, call.results[i]);
  }
}

__global__ void __launch_bounds__(kPassThreads)
    choose_best_kernel(SlotTables tables, SampleCall call, const SlicePick* best, int num_ranks) {
  const auto i = static_cast<int>(blockIdx.x * kPassThreads + threadIdx.x);
  if (i >= call.num_rows) return;
  if (call.slots[i] < 0) return store_padding(call.results[i]);
  const SlicePick pick = best_pick(best + i, num_ranks, call.num_rows);
  store_pick(pick, state_at(tables, call, i).position, call.results[i]);
}

}  // namespace

void launch_one_pass(const SlotTables& tables, const SampleCall& call, bool random,
                     SlicePick* picks, uint32_t* arrivals, CudaStream& stream) {
  const LaunchShape shape = {.grid = slices_grid(call.num_rows, tables.vocab_size),
                             .block = kPassThreads};
  const VocabularyPart all = {.first_id = 0, .width = tables.vocab_size};
  SlicePick* const no_best = nullptr;
  QUIRE_LAUNCH(stream, random ? one_pass_kernel<true> : one_pass_kernel<false>, shape, tables, call,
               all, picks, arrivals, no_best);
}

void launch_find_best(const SlotTables& tables, const SampleCall& call, const VocabularyPart& part,
                      bool random, SlicePick* picks, uint32_t* arrivals, SlicePick* best,
                      CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(call.num_rows),
                                          static_cast<unsigned>(num_part_slices(part.width))),
                             .block = kPassThreads};
  QUIRE_LAUNCH(stream, random ? one_pass_kernel<true> : one_pass_kernel<false>, shape, tables, call,
               part, picks, arrivals, best);
}

void launch_choose_best(const SlotTables& tables, const SampleCall& call, const SlicePick* best,
                        int num_ranks, CudaStream& stream) {
  const int num_blocks = ceil_div(call.num_rows, kPassThreads);
  QUIRE_LAUNCH(stream, choose_best_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_blocks), .block = kPassThreads}),
               tables, call, best, num_ranks);
}

}  // namespace quire::cuda
