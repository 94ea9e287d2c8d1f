// A row's state on the device: its start, and what it may not sample next.
#include "cuda/base/launch.h"
#include "cuda/sample/rules.cuh"

namespace quire::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerRow = 8;

template <typename T>
__device__ void copy_words(T* to, int64_t table, int32_t per_table, const int32_t* words,
                           WordSpan span) {
  const auto step = static_cast<int>(gridDim.y * blockDim.x);
  for (auto i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); i < span.count;
       i += step) {
    reinterpret_cast<int32_t*>(to)[table * per_table + i] = words[span.first + i];
  }
}

// Each block owns a range of ids: zeroes it, then counts the tokens that fall in it.
__device__ void count_seen(const RowTables& tables, const AddedRow& added, const int32_t* words) {
  uint32_t* seen = tables.seen + static_cast<int64_t>(added.state.table) * tables.vocab_stride;
  const auto blocks = static_cast<int>(gridDim.y);
  const int per_block = (tables.vocab_stride + blocks - 1) / blocks;
  const int first = static_cast<int>(blockIdx.y) * per_block;
  const int end = min(first + per_block, tables.vocab_stride);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int id = first + thread; id < end; id += kThreads) seen[id] = 0;
  __syncthreads();
  for (int i = thread; i < added.prompt_ids.count; i += kThreads) {
    const int32_t id = words[added.prompt_ids.first + i];
    if (id >= first && id < end) atomicOr(&seen[id], kInPrompt);
  }
  for (int i = thread; i < added.output_ids.count; i += kThreads) {
    const int32_t id = words[added.output_ids.first + i];
    if (id >= first && id < end) atomicAdd(&seen[id], 1U);
  }
}

__global__ void __launch_bounds__(kThreads)
    add_rows_kernel(RowTables tables, const AddedRow* headers, const int32_t* words) {
  const AddedRow& added = headers[blockIdx.x];
  const int64_t table = added.state.table;
  copy_words(tables.allowed, table, tables.bitmap_words, words, added.allowed);
  copy_words(tables.stops, table, tables.bitmap_words, words, added.stops);
  copy_words(tables.biased, table, tables.bitmap_words, words, added.biased);
  copy_words(tables.bias_ids, table, kMaxBiases, words, added.bias_ids);
  copy_words(tables.bias_values, table, kMaxBiases, words, added.bias_values);
  copy_words(tables.bad_word_ends, table, kMaxBadWords, words, added.bad_word_ends);
  copy_words(tables.bad_word_ids, table, kMaxBadWordIds, words, added.bad_word_ids);
  copy_words(tables.output_tail, table, tables.tail_size, words, added.output_tail);
  if ((added.state.flags & kHasPenalties) != 0) count_seen(tables, added, words);
  if (blockIdx.y == 0 && threadIdx.x == 0) {
    tables.states[added.row] = added.state;
    tables.last_tokens[added.row] = added.last_token;
  }
}

// A word is bad where the output would end with it; the prompt does not count.
__device__ bool has_begun(const int32_t* begun, int count, const int32_t* tail, int tail_size,
                          int num_output) {
  if (count > num_output) return false;
  for (int k = 0; k < count; ++k) {
    if (tail[(num_output - count + k) % tail_size] != begun[k]) return false;
  }
  return true;
}

__global__ void __launch_bounds__(kThreads) forbid_kernel(RowTables tables, SampleCall call) {
  const auto i = static_cast<int>(blockIdx.x);
  const int row_id = call.row_ids[i];
  if (row_id < 0 || !is_of_pass(call, i, SamplePass::kRules)) return;
  const RowState& state = tables.states[row_id];
  const bool has_allowed = (state.flags & kHasAllowed) != 0;
  const bool has_bad_words = (state.flags & kHasBadWords) != 0;
  const bool has_stops = (state.flags & kHasStops) != 0;
  const uint32_t* mask = mask_of(tables, call, i);
  if (!has_allowed && !has_stops && !has_bad_words && mask == nullptr) return;
  const bool forbids_stops = has_stops && state.num_output < state.min_tokens;
  const int64_t table = state.table;
  const int64_t line = table * tables.bitmap_words;
  uint32_t* forbidden = tables.forbidden + static_cast<int64_t>(i) * tables.bitmap_words;
  for (auto w = static_cast<int>(threadIdx.x); w < tables.bitmap_words; w += kThreads) {
    forbidden[w] = (mask != nullptr ? ~mask[w] : 0U) |
                   (has_allowed ? ~tables.allowed[line + w] : 0U) |
                   (forbids_stops ? tables.stops[line + w] : 0U);
  }
  __syncthreads();
  if (!has_bad_words) return;
  const int32_t* ends = tables.bad_word_ends + table * kMaxBadWords;
  const int32_t* ids = tables.bad_word_ids + table * kMaxBadWordIds;
  const int32_t* tail = tables.output_tail + table * tables.tail_size;
  for (auto w = static_cast<int>(threadIdx.x); w < state.num_bad_words; w += kThreads) {
    const int first = w == 0 ? 0 : ends[w - 1];
    const int last = ends[w] - 1;
    if (has_begun(ids + first, last - first, tail, tables.tail_size, state.num_output)) {
      atomicOr(&forbidden[ids[last] / 32], 1U << ids[last] % 32);
    }
  }
}

}  // namespace

void launch_add_rows(const RowTables& tables, const void* block, int num_rows, CudaStream& stream) {
  const auto* headers = static_cast<const AddedRow*>(block);
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_rows), kBlocksPerRow),
                             .block = kThreads};
  QUIRE_LAUNCH(stream, add_rows_kernel, shape, tables, headers,
               reinterpret_cast<const int32_t*>(headers + num_rows));
}

void launch_forbid(const RowTables& tables, const SampleCall& call, CudaStream& stream) {
  QUIRE_LAUNCH(stream, forbid_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(call.num_rows), .block = kThreads}),
               tables, call);
}

}  // namespace quire::cuda
