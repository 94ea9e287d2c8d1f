// Grid: one thread block per slice of the step. Its threads first append the slice's new pages to
// its row of the persistent table, then copy the used part of the row to the step's table, and
// write the slice's tokens. No slice reads another slice's row, so one barrier per thread block
// orders everything.
#include "cuda/base/launch.h"
#include "cuda/step/metadata.h"
#include "kv/kv_layout.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 128;

__device__ int num_computed_of(const StepArrays& arrays, const StepSlice& slice) {
  if (slice.row < 0 || slice.num_computed >= 0) return slice.num_computed;
  // A sequence may have ended in a step whose results the host has not read yet; its progress is
  // then limited to its pages.
  return min(arrays.num_computed[slice.row], slice.num_pages * arrays.page_size - 1);
}

__device__ void append_pages(const StepArrays& arrays, const StepSlice& slice,
                             const StepAppend* appends, const int32_t* pages) {
  for (int i = slice.first_append; i < slice.first_append + slice.num_appends; ++i) {
    const StepAppend append = appends[i];
    int32_t* row_pages =
        arrays.tables[append.table].row_pages + slice.row * arrays.max_pages + append.first_page;
    for (int k = threadIdx.x; k < append.num_pages; k += kThreads) {
      row_pages[k] = pages[append.pages_at + k];
    }
  }
}

__device__ void derive_tokens(const StepArrays& arrays, const StepSlice& slice, int num_computed,
                              const int32_t* token_ids) {
  const int32_t* next_tokens = arrays.next_tokens + static_cast<int64_t>(slice.row) * arrays.q_len;
  for (int i = threadIdx.x; i < slice.q_len; i += kThreads) {
    const int token_idx = slice.first_token + i;
    const int32_t token = token_ids[token_idx];
    arrays.token_ids[token_idx] = token == kPlaceholderToken ? next_tokens[i] : token;
    arrays.positions[token_idx] = num_computed + i;
  }
}

__device__ void derive_table(const StepArrays& arrays, const TableArrays& table,
                             const StepSlice& slice, int num_computed) {
  const int32_t* row_pages = table.row_pages + slice.row * arrays.max_pages;
  int32_t* batch_pages = table.block_table + blockIdx.x * arrays.max_pages;
  const int kv_len = num_computed + slice.q_len;
  const int num_pages = (kv_len + arrays.page_size - 1) / arrays.page_size;
  const int first = first_page_read(num_computed, table.window, arrays.page_size);
  for (int i = threadIdx.x; i < num_pages; i += kThreads) {
    batch_pages[i] = i >= first && i < slice.num_pages ? row_pages[i] : 0;
  }
  for (int i = threadIdx.x; i < slice.q_len; i += kThreads) {
    const int position = num_computed + i;
    const int page_idx = position / arrays.page_size;
    table.slot_mapping[slice.first_token + i] =
        page_idx < slice.num_pages ? static_cast<int64_t>(row_pages[page_idx]) * arrays.page_size +
                                         position % arrays.page_size
                                   : -1;
  }
}

__device__ void pad(const StepArrays& arrays, const StepSlice& slice) {
  for (int i = threadIdx.x; i < slice.q_len; i += kThreads) {
    arrays.token_ids[slice.first_token + i] = 0;
    arrays.positions[slice.first_token + i] = 0;
  }
  for (int t = 0; t < arrays.num_tables; ++t) {
    const TableArrays& table = arrays.tables[t];
    if (threadIdx.x == 0) table.block_table[blockIdx.x * arrays.max_pages] = 0;
    for (int i = threadIdx.x; i < slice.q_len; i += kThreads) {
      table.slot_mapping[slice.first_token + i] = -1;
    }
  }
}

__device__ void describe_request(const StepArrays& arrays, const StepHeader& header,
                                 const StepSlice& slice, int num_computed) {
  if (threadIdx.x != 0) return;
  const bool is_padding = slice.row < 0;
  arrays.query_start[blockIdx.x] = slice.first_token;
  arrays.seq_lens[blockIdx.x] = is_padding ? 0 : num_computed + slice.q_len;
  arrays.slice_rows[blockIdx.x] = slice.num_samples > 0 ? slice.row : -1;
  if (blockIdx.x + 1 == header.num_slices) arrays.query_start[blockIdx.x + 1] = header.num_tokens;
}

__device__ void derive_logits_rows(const StepArrays& arrays, const StepSlice& slice) {
  for (int i = threadIdx.x; i < slice.num_logits_rows; i += kThreads) {
    const int logits_row = slice.first_logits_row + i;
    const int token = slice.logits_token + i;
    const int offset = token - slice.sample_token;
    const bool is_sampled = offset >= 0 && offset < slice.num_samples;
    arrays.logit_tokens[logits_row] = slice.first_token + token;
    arrays.sample_rows[logits_row] = is_sampled ? slice.row : -1;
    arrays.sample_offsets[logits_row] = is_sampled ? offset : 0;
  }
}

__global__ void __launch_bounds__(kThreads) metadata_kernel(const StepArrays arrays) {
  const auto& header = *reinterpret_cast<const StepHeader*>(arrays.step);
  const auto* words = reinterpret_cast<const int32_t*>(arrays.step);
  const StepSlice slice =
      reinterpret_cast<const StepSlice*>(arrays.step + sizeof(StepHeader))[blockIdx.x];
  const int num_computed = num_computed_of(arrays, slice);
  describe_request(arrays, header, slice, num_computed);
  derive_logits_rows(arrays, slice);
  if (slice.row < 0) return pad(arrays, slice);
  append_pages(arrays, slice, reinterpret_cast<const StepAppend*>(words + header.appends_at),
               words + header.pages_at);
  derive_tokens(arrays, slice, num_computed, words + header.tokens_at);
  __syncthreads();
  for (int t = 0; t < arrays.num_tables; ++t) {
    derive_table(arrays, arrays.tables[t], slice, num_computed);
  }
}

__global__ void append_pages_kernel(const StepArrays arrays, const PagePiece* pieces) {
  const PagePiece& piece = pieces[blockIdx.x];
  int32_t* row_pages =
      arrays.tables[piece.table].row_pages + piece.row * arrays.max_pages + piece.first;
  if (threadIdx.x < piece.num_pages) row_pages[threadIdx.x] = piece.page_ids[threadIdx.x];
}

}  // namespace

void launch_metadata(const StepArrays& arrays, int num_slices, CudaStream& stream) {
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(num_slices)), .block = kThreads};
  QUIRE_LAUNCH(stream, metadata_kernel, shape, arrays);
}

void launch_append_pages(const StepArrays& arrays, const PagePiece* pieces, int num_pieces,
                         CudaStream& stream) {
  constexpr unsigned kPieceThreads = 64;
  static_assert(kPieceThreads >= PagePiece::kMaxPages);
  QUIRE_LAUNCH(stream, append_pages_kernel,
               (LaunchShape{.grid = static_cast<unsigned>(num_pieces), .block = kPieceThreads}),
               arrays, pieces);
}

}  // namespace quire::cuda
