// Grid: one thread block per span of the step. Its threads first append the span's new pages to the
// row of its slot in the persistent table. Then they copy the used part of that row to the step's
// table, and write the span's tokens. No span reads another span's slot, so one barrier per thread
// block is sufficient.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/step/step_inputs.h"
#include "kv/kv_layout.h"

namespace quire::cuda {
namespace {

constexpr int kMetadataThreads = 128;

// The number of tokens of the span's sequence that have keys and values.
__device__ int num_kept_of(const StepArrays& arrays, const StepSpan& span) {
  return span.slot < 0 || span.num_computed >= 0 ? span.num_computed
                                                 : arrays.num_computed[span.slot];
}

__device__ void append_pages(const StepArrays& arrays, const StepSpan& span,
                             const StepAppend* appends, const int32_t* pages) {
  for (int i = span.first_append; i < span.first_append + span.num_appends; ++i) {
    const StepAppend append = appends[i];
    int32_t* slot_pages =
        arrays.tables[append.table].slot_pages + span.slot * arrays.max_pages + append.first_page;
    for (int k = threadIdx.x; k < append.num_pages; k += kMetadataThreads) {
      slot_pages[k] = pages[append.pages_at + k];
    }
  }
}

__device__ void derive_tokens(const StepArrays& arrays, const StepSpan& span, int num_computed,
                              const int32_t* token_ids) {
  const int32_t* next_tokens =
      arrays.next_tokens + static_cast<int64_t>(span.slot) * arrays.max_q_len;
  for (int i = threadIdx.x; i < span.q_len; i += kMetadataThreads) {
    const int token_idx = span.first_token + i;
    const int32_t token = token_ids[token_idx];
    arrays.token_ids[token_idx] = token == kPlaceholderToken ? next_tokens[i] : token;
    arrays.positions[token_idx] = num_computed + i;
  }
}

__device__ void derive_table(const StepArrays& arrays, const TableArrays& table,
                             const StepSpan& span, int num_kept, int num_computed) {
  const int32_t* slot_pages = table.slot_pages + span.slot * arrays.max_pages;
  int32_t* batch_pages = table.block_table + blockIdx.x * arrays.max_pages;
  const int kv_len = num_computed + span.q_len;
  const int num_pages = ceil_div(kv_len, arrays.page_size);
  const int first = first_page_read(num_computed, table.window, arrays.page_size);
  for (int i = threadIdx.x; i < num_pages; i += kMetadataThreads) {
    batch_pages[i] = i >= first && i < span.num_pages ? slot_pages[i] : 0;
  }
  for (int i = threadIdx.x; i < span.q_len; i += kMetadataThreads) {
    const int position = num_computed + i;
    const int page_idx = position / arrays.page_size;
    table.kv_slots[span.first_token + i] =
        position >= num_kept && page_idx < span.num_pages
            ? static_cast<int64_t>(slot_pages[page_idx]) * arrays.page_size +
                  position % arrays.page_size
            : -1;
  }
}

__device__ void pad(const StepArrays& arrays, const StepHeader& header, const StepSpan& span,
                    const int32_t* token_ids) {
  for (int i = threadIdx.x; i < span.q_len; i += kMetadataThreads) {
    const int token_idx = span.first_token + i;
    arrays.token_ids[token_idx] = token_idx < header.num_given_tokens ? token_ids[token_idx] : 0;
    arrays.positions[span.first_token + i] = 0;
  }
  for (int t = 0; t < arrays.num_tables; ++t) {
    const TableArrays& table = arrays.tables[t];
    if (threadIdx.x == 0) table.block_table[blockIdx.x * arrays.max_pages] = 0;
    for (int i = threadIdx.x; i < span.q_len; i += kMetadataThreads) {
      table.kv_slots[span.first_token + i] = -1;
    }
  }
}

__device__ void describe_request(const StepArrays& arrays, const StepHeader& header,
                                 const StepSpan& span, int num_computed) {
  if (threadIdx.x != 0) return;
  const bool is_padding = span.slot < 0;
  arrays.query_start[blockIdx.x] = span.first_token;
  arrays.seq_lens[blockIdx.x] = is_padding ? 0 : num_computed + span.q_len;
  // The blocks of a sequence that decodes were written in earlier steps. A chunk of a prompt may
  // begin after cached blocks that another span of this step writes.
  const bool decodes = !is_padding && span.num_computed < 0;
  arrays.settled_lens[blockIdx.x] = decodes ? num_computed : 0;
  arrays.span_slots[blockIdx.x] = span.num_samples > 0 ? span.slot : -1;
  if (blockIdx.x + 1 == header.num_spans) arrays.query_start[blockIdx.x + 1] = header.num_tokens;
}

__device__ void derive_logits_rows(const StepArrays& arrays, const StepSpan& span) {
  for (int i = threadIdx.x; i < span.num_logits_rows; i += kMetadataThreads) {
    const int logits_row = span.first_logits_row + i;
    const int token = span.logits_token + i;
    const int offset = token - span.sample_token;
    const bool is_sampled = offset >= 0 && offset < span.num_samples;
    arrays.logit_tokens[logits_row] = span.first_token + token;
    arrays.sample_slots[logits_row] = is_sampled ? span.slot : -1;
    arrays.sample_offsets[logits_row] = is_sampled ? offset : 0;
  }
}

__global__ void __launch_bounds__(kMetadataThreads) metadata_kernel(const StepArrays arrays) {
  const auto& header = *reinterpret_cast<const StepHeader*>(arrays.packed_step);
  const auto* words = reinterpret_cast<const int32_t*>(arrays.packed_step);
  const StepSpan span =
      reinterpret_cast<const StepSpan*>(arrays.packed_step + sizeof(StepHeader))[blockIdx.x];
  // A sequence may have ended in a step whose results the host has not read yet. Its progress is
  // then limited to its pages. They are not written again, because other sequences may read them by
  // now.
  const int num_kept = num_kept_of(arrays, span);
  const int num_computed =
      span.slot < 0 ? num_kept : min(num_kept, span.num_pages * arrays.page_size - 1);
  describe_request(arrays, header, span, num_computed);
  derive_logits_rows(arrays, span);
  if (span.slot < 0) return pad(arrays, header, span, words + header.tokens_at);
  append_pages(arrays, span, reinterpret_cast<const StepAppend*>(words + header.appends_at),
               words + header.pages_at);
  derive_tokens(arrays, span, num_computed, words + header.tokens_at);
  __syncthreads();
  for (int t = 0; t < arrays.num_tables; ++t) {
    derive_table(arrays, arrays.tables[t], span, num_kept, num_computed);
  }
}

__global__ void append_pages_kernel(const StepArrays arrays, const OverflowPages* overflow) {
  const OverflowPages& pages = overflow[blockIdx.x];
  int32_t* slot_pages =
      arrays.tables[pages.table].slot_pages + pages.slot * arrays.max_pages + pages.first;
  if (threadIdx.x < pages.num_pages) slot_pages[threadIdx.x] = pages.page_ids[threadIdx.x];
}

}  // namespace

void launch_metadata(const StepArrays& arrays, int num_spans, CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_spans)),
                             .block = kMetadataThreads};
  QUIRE_LAUNCH(stream, metadata_kernel, shape, arrays);
}

void launch_append_pages(const StepArrays& arrays, const OverflowPages* pages, int count,
                         CudaStream& stream) {
  constexpr unsigned kAppendThreads = 64;
  static_assert(kAppendThreads >= OverflowPages::kMaxPages);
  QUIRE_LAUNCH(stream, append_pages_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(count), .block = kAppendThreads}), arrays,
               pages);
}

}  // namespace quire::cuda
