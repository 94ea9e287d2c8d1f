#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/step/draft_inputs.h"
#include "kv/kv_layout.h"

namespace quire::cuda {
namespace {

constexpr int kDraftThreads = 128;

__device__ StepSpan read_span(const StepArrays& step, int span_idx) {
  return reinterpret_cast<const StepSpan*>(step.packed_step + sizeof(StepHeader))[span_idx];
}

// The position of the newest token, limited to the sequence's pages, because the sequence may have
// ended in a step whose results the host has not read yet.
__device__ int first_position(const StepArrays& step, const StepSpan& span, int num_computed) {
  return min(num_computed, span.num_pages * step.page_size - 1);
}

// The last token of the span that the target has kept.
__device__ int last_kept(const StepArrays& step, const StepSpan& span, int num_computed) {
  if (span.num_computed >= 0) return span.q_len - 1;
  const int num_kept = num_computed - step.positions[span.first_token];
  return min(max(num_kept, 1), span.q_len) - 1;
}

// Tokens after the last kept one are rejected drafts. The next step overwrites their keys and
// values, and no earlier token attends to them.
__device__ int32_t token_of_first_pass(const StepArrays& step, const DraftArrays& drafts,
                                       const StepSpan& span, bool samples, int last, int i) {
  if (span.slot < 0) return 0;
  const int32_t* tokens = step.token_ids + span.first_token;
  if (drafts.num_ahead == 0) return tokens[i];
  if (samples && i == last) return drafts.next_tokens[span.slot * step.max_q_len];
  if (i + 1 == span.q_len) return samples ? tokens[i] : span.token_after;
  return tokens[i + 1];
}

// Copies the pages that the passes after the first read.
__device__ void copy_pages(const StepArrays& step, const DraftArrays& drafts, const StepSpan& span,
                           int table_idx, int first) {
  const TableArrays& table = drafts.tables[table_idx];
  int32_t* pages = table.block_table + blockIdx.x * step.max_pages;
  if (first < 0) {
    if (threadIdx.x == 0) pages[0] = 0;
    return;
  }
  const int32_t* slot_pages = step.tables[table_idx].slot_pages + span.slot * step.max_pages;
  const int num_pages = ceil_div(first + drafts.num_passes * drafts.q_len, step.page_size);
  // With the target's cache, the query is at the position before the newest token.
  const int query = drafts.reads_target_cache ? max(first - 1, 0) : first;
  const int first_page = first_page_read(query, table.window, step.page_size);
  for (int i = threadIdx.x; i < num_pages; i += kDraftThreads) {
    pages[i] = i >= first_page && i < span.num_pages ? slot_pages[i] : 0;
  }
}

__global__ void __launch_bounds__(kDraftThreads)
    first_pass_kernel(const StepArrays step, const DraftArrays drafts) {
  const StepSpan span = read_span(step, static_cast<int>(blockIdx.x));
  const bool samples = step.span_slots[blockIdx.x] >= 0;
  const int num_computed = samples ? drafts.num_computed[span.slot] : 0;
  const int last = samples ? last_kept(step, span, num_computed) : 0;
  for (int i = threadIdx.x; i < span.q_len; i += kDraftThreads) {
    drafts.step_token_ids[span.first_token + i] =
        token_of_first_pass(step, drafts, span, samples, last, i);
  }
  if (threadIdx.x == 0) drafts.last_rows[blockIdx.x] = span.first_token + last;
  const int first = samples ? first_position(step, span, num_computed) : -1;
  for (int t = 0; t < step.num_tables; ++t) copy_pages(step, drafts, span, t, first);
}

// A token beyond the sequence's pages is not written. This check needs the true position, because
// the limited position may be in a page that other sequences read.
__device__ int64_t kv_slot(const StepArrays& step, const StepSpan& span, int table_idx,
                           int position, int true_position) {
  if (true_position >= span.num_pages * step.page_size) return -1;
  const int32_t* slot_pages = step.tables[table_idx].slot_pages + span.slot * step.max_pages;
  return static_cast<int64_t>(slot_pages[position / step.page_size]) * step.page_size +
         position % step.page_size;
}

__global__ void __launch_bounds__(kDraftThreads)
    draft_pass_kernel(const StepArrays step, const DraftArrays drafts, int pass_idx,
                      int num_spans) {
  const auto i = static_cast<int>(blockIdx.x * kDraftThreads + threadIdx.x);
  if (i >= num_spans) return;
  const int slot = step.span_slots[i];
  if (slot < 0) {
    drafts.token_ids[i] = 0;
    drafts.positions[i] = 0;
    drafts.seq_lens[i] = 0;
    for (int t = 0; t < step.num_tables; ++t) drafts.tables[t].kv_slots[i] = -1;
    return;
  }
  const StepSpan span = read_span(step, i);
  const int num_computed = drafts.num_computed[slot];
  const int num_ahead = drafts.reads_target_cache ? 0 : pass_idx;
  const int position = first_position(step, span, num_computed) + num_ahead;
  drafts.token_ids[i] = drafts.next_tokens[slot * step.max_q_len + pass_idx + drafts.num_ahead];
  drafts.positions[i] = position;
  drafts.seq_lens[i] = position + (drafts.reads_target_cache ? 0 : 1);
  for (int t = 0; t < step.num_tables; ++t) {
    drafts.tables[t].kv_slots[i] =
        drafts.reads_target_cache ? -1 : kv_slot(step, span, t, position, num_computed + num_ahead);
  }
}

// Writes token i of the block of span blockIdx.x. The newest token is at position `first` (limited;
// < 0: padding); its true position is `true_first`.
__device__ void write_block_token(const StepArrays& step, const DraftArrays& drafts,
                                  const BlockTokens& block, const StepSpan& span, int first,
                                  int true_first, int i) {
  const int token = static_cast<int>(blockIdx.x) * drafts.q_len + i;
  if (first < 0) {
    drafts.token_ids[token] = 0;
    drafts.positions[token] = 0;
    for (int t = 0; t < step.num_tables; ++t) drafts.tables[t].kv_slots[token] = -1;
    return;
  }
  drafts.token_ids[token] =
      i == 0 ? drafts.next_tokens[span.slot * step.max_q_len] : block.mask_token_id;
  drafts.positions[token] = first + i;
  for (int t = 0; t < step.num_tables; ++t) {
    drafts.tables[t].kv_slots[token] = kv_slot(step, span, t, first + i, true_first + i);
  }
}

__global__ void __launch_bounds__(kDraftThreads)
    block_pass_kernel(const StepArrays step, const DraftArrays drafts, const BlockTokens block) {
  const auto span_idx = static_cast<int>(blockIdx.x);
  const auto num_spans = static_cast<int>(gridDim.x);
  const StepSpan span = read_span(step, span_idx);
  const bool samples = step.span_slots[span_idx] >= 0;
  const int num_computed = samples ? drafts.num_computed[span.slot] : 0;
  const int first = samples ? first_position(step, span, num_computed) : -1;
  for (int i = threadIdx.x; i < drafts.q_len; i += kDraftThreads) {
    write_block_token(step, drafts, block, span, first, num_computed, i);
  }
  for (int i = threadIdx.x; i < block.num_drafts; i += kDraftThreads) {
    drafts.logit_tokens[i * num_spans + span_idx] =
        span_idx * drafts.q_len + block.num_before_drafts + i;
  }
  if (threadIdx.x == 0) {
    drafts.seq_lens[span_idx] =
        samples ? min(first + drafts.q_len, span.num_pages * step.page_size) : 0;
  }
  for (int t = 0; t < step.num_tables; ++t) copy_pages(step, drafts, span, t, first);
}

__global__ void __launch_bounds__(kDraftThreads)
    previous_tokens_kernel(const StepArrays step, const DraftArrays drafts, int draft_idx,
                           int num_spans) {
  const auto i = static_cast<int>(blockIdx.x * kDraftThreads + threadIdx.x);
  if (i >= num_spans) return;
  const int slot = step.span_slots[i];
  drafts.previous_tokens[i] = slot < 0 ? 0 : drafts.next_tokens[slot * step.max_q_len + draft_idx];
}

__global__ void count_up_kernel(int32_t* values, int count, int stride) {
  const auto i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) values[i] = i * stride;
}

}  // namespace

void launch_first_pass(const StepArrays& step, const DraftArrays& drafts, int num_spans,
                       CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_spans)),
                             .block = kDraftThreads};
  QUIRE_LAUNCH(stream, first_pass_kernel, shape, step, drafts);
}

void launch_draft_pass(const StepArrays& step, const DraftArrays& drafts, int pass_idx,
                       int num_spans, CudaStream& stream) {
  const auto num_blocks = static_cast<unsigned>(ceil_div(num_spans, kDraftThreads));
  const LaunchShape shape = {.grid = dim3(num_blocks), .block = kDraftThreads};
  QUIRE_LAUNCH(stream, draft_pass_kernel, shape, step, drafts, pass_idx, num_spans);
}

void launch_block_pass(const StepArrays& step, const DraftArrays& drafts, const BlockTokens& block,
                       int num_spans, CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_spans)),
                             .block = kDraftThreads};
  QUIRE_LAUNCH(stream, block_pass_kernel, shape, step, drafts, block);
}

void launch_previous_tokens(const StepArrays& step, const DraftArrays& drafts, int draft_idx,
                            int num_spans, CudaStream& stream) {
  const auto num_blocks = static_cast<unsigned>(ceil_div(num_spans, kDraftThreads));
  const LaunchShape shape = {.grid = dim3(num_blocks), .block = kDraftThreads};
  QUIRE_LAUNCH(stream, previous_tokens_kernel, shape, step, drafts, draft_idx, num_spans);
}

void launch_count_up(int32_t* values, int count, int stride, CudaStream& stream) {
  const auto num_blocks = static_cast<unsigned>(ceil_div(count, kDraftThreads));
  QUIRE_LAUNCH(stream, count_up_kernel, (LaunchShape{.grid = num_blocks, .block = kDraftThreads}),
               values, count, stride);
}

}  // namespace quire::cuda
