// Kernels for a slot's state on the device: they upload it, compute the tokens that it may not
// sample next, and advance it.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/sample/rules.cuh"

namespace quire::cuda {
namespace {

constexpr int kSlotThreads = 256;
constexpr int kBlocksPerSlot = 8;

template <typename T>
__device__ void copy_words(T* to, int64_t table, int32_t per_table, const int32_t* words,
                           WordSpan span) {
  const auto step = static_cast<int>(gridDim.y * blockDim.x);
  for (auto i = static_cast<int>(blockIdx.y * blockDim.x + threadIdx.x); i < span.count;
       i += step) {
    reinterpret_cast<int32_t*>(to)[table * per_table + i] = words[span.first + i];
  }
}

// Each thread block owns a range of ids: it zeroes the range, then counts the tokens in it.
__device__ void count_seen(const SlotTables& tables, const UploadedSlot& added,
                           const int32_t* words) {
  uint32_t* seen = tables.seen + static_cast<int64_t>(added.state.table) * tables.vocab_stride;
  const auto blocks = static_cast<int>(gridDim.y);
  const int per_block = ceil_div(tables.vocab_stride, blocks);
  const int first = static_cast<int>(blockIdx.y) * per_block;
  const int end = min(first + per_block, tables.vocab_stride);
  const auto thread = static_cast<int>(threadIdx.x);
  for (int id = first + thread; id < end; id += kSlotThreads) seen[id] = 0;
  __syncthreads();
  for (int i = thread; i < added.prompt_ids.count; i += kSlotThreads) {
    const int32_t id = words[added.prompt_ids.first + i];
    if (id >= first && id < end) atomicOr(&seen[id], kInPrompt);
  }
  for (int i = thread; i < added.output_ids.count; i += kSlotThreads) {
    const int32_t id = words[added.output_ids.first + i];
    if (id >= first && id < end) atomicAdd(&seen[id], 1U);
  }
}

__device__ void append_output(const SlotTables& tables, SlotState& state, int32_t token_id) {
  if ((state.flags & kHasPenalties) != 0) {
    ++tables.seen[static_cast<int64_t>(state.table) * tables.vocab_stride + token_id];
  }
  if ((state.flags & kHasBadWords) != 0) {
    tables.output_tail[static_cast<int64_t>(state.table) * tables.tail_size +
                       state.num_output % tables.tail_size] = token_id;
  }
  ++state.position;
  ++state.num_output;
}

__global__ void __launch_bounds__(kSlotThreads)
    add_slots_kernel(SlotTables tables, const UploadedSlot* headers, const int32_t* words) {
  const UploadedSlot& added = headers[blockIdx.x];
  const int64_t table = added.state.table;
  SlotTables::for_each_list(tables, [&](auto* array, int32_t per_table, auto list) {
    copy_words(array, table, per_table, words, added.*list);
  });
  if ((added.state.flags & kHasPenalties) != 0) count_seen(tables, added, words);
  if (blockIdx.y == 0 && threadIdx.x == 0) {
    tables.states[added.slot] = added.state;
    tables.num_computed[added.slot] = static_cast<int32_t>(added.state.position) - 1;
    tables.next_tokens[added.slot * tables.q_len] = added.last_token;
  }
}

// The logits rows of the span that begins at row `first`.
__device__ int count_span_rows(const SampleCall& call, int first) {
  int end = first + 1;
  while (end < call.num_rows && call.slots[end] == call.slots[first]) ++end;
  return end - first;
}

__device__ bool begins_span(const SampleCall& call, int i) {
  return i < call.num_rows && call.slots[i] >= 0 && call.offsets[i] == 0;
}

// Whether the token of a span's row equals its draft, so that the next row is valid too.
__device__ bool is_accepted(const SlotTables& tables, const SampleCall& call, int first,
                            int offset) {
  if (call.num_accepted != nullptr) return offset < call.num_accepted[first];
  const int64_t next = static_cast<int64_t>(call.slots[first]) * tables.q_len + offset + 1;
  return offset + 1 < tables.q_len &&
         call.results[first + offset].token_id == tables.next_tokens[next];
}

// One thread per span. The drafts replace the sampled tokens.
__global__ void __launch_bounds__(kSlotThreads)
    accept_synthetic_kernel(SlotTables tables, SampleCall call, const double* rates) {
  const auto first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (!begins_span(call, first)) return;
  const int slot = call.slots[first];
  const SlotState& state = tables.states[slot];
  const DraftNoise noise(state.seed, static_cast<uint64_t>(state.position));
  const auto num_drafts = static_cast<size_t>(count_span_rows(call, first) - 1);
  const auto count =
      static_cast<int>(count_synthetic({rates, num_drafts}, noise.synthetic_acceptance()));
  const int32_t* drafts = drafts_of(tables, call, first);
  for (int i = 0; i < count; ++i) call.results[first + i].token_id = drafts[i];
  call.num_accepted[first] = count;
}

// One thread per span.
__global__ void __launch_bounds__(kSlotThreads) commit_kernel(SlotTables tables, SampleCall call) {
  const auto first = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (!begins_span(call, first)) return;
  const int slot = call.slots[first];
  SlotState& state = tables.states[slot];
  int32_t* next_tokens = tables.next_tokens + static_cast<int64_t>(slot) * tables.q_len;
  int32_t newest = next_tokens[0];
  int count = 0;
  const int end = first + count_span_rows(call, first);
  for (int i = first; i < end; ++i) {
    // After accepted drafts, the next step reports the error, because it samples from the same
    // logits.
    if (call.results[i].status != RowStatus::kOk) break;
    newest = call.results[i].token_id;
    append_output(tables, state, newest);
    ++count;
    if (!is_accepted(tables, call, first, count - 1)) break;
  }
  call.results[first].num_tokens = count;
  next_tokens[0] = newest;
  tables.num_computed[slot] = static_cast<int32_t>(state.position) - 1;
}

// The output before a logits row: the sequence's output, then the drafts that precede the row.
struct Output {
  const int32_t* tail;
  int tail_size;
  const int32_t* drafts;
  int num_drafts;
  int num_tokens;

  __device__ int32_t operator[](int idx) const {
    const int draft = idx - (num_tokens - num_drafts);
    return draft >= 0 ? drafts[draft] : tail[idx % tail_size];
  }
};

// A bad word is forbidden if the output would end with it; the prompt does not count.
__device__ bool has_begun(const int32_t* begun, int count, const Output& output) {
  if (count > output.num_tokens) return false;
  for (int k = 0; k < count; ++k) {
    if (output[output.num_tokens - count + k] != begun[k]) return false;
  }
  return true;
}

__global__ void __launch_bounds__(kSlotThreads) forbid_kernel(SlotTables tables, SampleCall call) {
  const auto i = static_cast<int>(blockIdx.x);
  if (call.slots[i] < 0 || !is_of_pass(call, i, SamplePass::kRules)) return;
  const SlotState state = state_at(tables, call, i);
  const bool has_allowed = (state.flags & kHasAllowed) != 0;
  const bool has_bad_words = (state.flags & kHasBadWords) != 0;
  const bool has_stops = (state.flags & kHasStops) != 0;
  const uint32_t* mask = mask_of(tables, call, i);
  if (!has_allowed && !has_stops && !has_bad_words && mask == nullptr) return;
  const bool forbids_stops = has_stops && state.num_output < state.min_tokens;
  const int64_t table = state.table;
  const int64_t line = table * tables.bitmap_words;
  uint32_t* forbidden = tables.forbidden + static_cast<int64_t>(i) * tables.bitmap_words;
  for (auto w = static_cast<int>(threadIdx.x); w < tables.bitmap_words; w += kSlotThreads) {
    forbidden[w] = (mask != nullptr ? ~mask[w] : 0U) |
                   (has_allowed ? ~tables.allowed[line + w] : 0U) |
                   (forbids_stops ? tables.stops[line + w] : 0U);
  }
  __syncthreads();
  if (!has_bad_words) return;
  const int32_t* ends = tables.bad_word_ends + table * kMaxBadWords;
  const int32_t* ids = tables.bad_word_ids + table * kMaxBadWordIds;
  const Output output = {.tail = tables.output_tail + table * tables.tail_size,
                         .tail_size = tables.tail_size,
                         .drafts = drafts_of(tables, call, i),
                         .num_drafts = call.offsets[i],
                         .num_tokens = state.num_output};
  for (auto w = static_cast<int>(threadIdx.x); w < state.num_bad_words; w += kSlotThreads) {
    const int first = w == 0 ? 0 : ends[w - 1];
    const int last = ends[w] - 1;
    if (has_begun(ids + first, last - first, output)) {
      atomicOr(&forbidden[ids[last] / 32], 1U << ids[last] % 32);
    }
  }
}

}  // namespace

void launch_add_slots(const SlotTables& tables, const void* block, int num_slots,
                      CudaStream& stream) {
  const auto* headers = static_cast<const UploadedSlot*>(block);
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_slots), kBlocksPerSlot),
                             .block = kSlotThreads};
  QUIRE_LAUNCH(stream, add_slots_kernel, shape, tables, headers,
               reinterpret_cast<const int32_t*>(headers + num_slots));
}

void launch_accept_synthetic(const SlotTables& tables, const SampleCall& call, const double* rates,
                             CudaStream& stream) {
  const int num_blocks = ceil_div(call.num_rows, kSlotThreads);
  QUIRE_LAUNCH(stream, accept_synthetic_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_blocks), .block = kSlotThreads}),
               tables, call, rates);
}

void launch_commit(const SlotTables& tables, const SampleCall& call, CudaStream& stream) {
  const int num_blocks = ceil_div(call.num_rows, kSlotThreads);
  QUIRE_LAUNCH(stream, commit_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_blocks), .block = kSlotThreads}),
               tables, call);
}

void launch_forbid(const SlotTables& tables, const SampleCall& call, CudaStream& stream) {
  QUIRE_LAUNCH(stream, forbid_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(call.num_rows), .block = kSlotThreads}),
               tables, call);
}

}  // namespace quire::cuda
