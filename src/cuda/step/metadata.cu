// Grid: one block of threads a slice of the step. A slice's threads first append its new pages to
// its row of the table that stays, then copy the part of the row that is in use, then spell out its
// tokens. Nobody reads another slice's row, so one barrier in the block is all the ordering.
#include "cuda/base/launch.h"
#include "cuda/step/metadata.h"

namespace quire::cuda {
namespace {

constexpr int kThreads = 128;

__device__ void derive_tokens(const StepArrays& arrays, const StepSlice& slice,
                              const int32_t* token_ids, const int32_t* row_pages) {
  for (int i = threadIdx.x; i < slice.q_len; i += kThreads) {
    const int token_idx = slice.first_token + i;
    const int position = slice.num_computed + i;
    const int32_t token = token_ids[token_idx];
    const int64_t page = row_pages[position / arrays.page_size];
    arrays.token_ids[token_idx] =
        token == kPlaceholderToken ? arrays.last_tokens[slice.row] : token;
    arrays.positions[token_idx] = position;
    arrays.slot_mapping[token_idx] = page * arrays.page_size + position % arrays.page_size;
  }
}

__device__ void pad(const StepArrays& arrays, const StepSlice& slice) {
  if (threadIdx.x != 0) return;
  arrays.token_ids[slice.first_token] = 0;
  arrays.positions[slice.first_token] = 0;
  arrays.slot_mapping[slice.first_token] = -1;
}

__device__ void describe_request(const StepArrays& arrays, const StepHeader& header,
                                 const StepSlice& slice) {
  if (threadIdx.x != 0) return;
  const bool is_padding = slice.row < 0;
  arrays.query_start[blockIdx.x] = slice.first_token;
  arrays.seq_lens[blockIdx.x] = is_padding ? 0 : slice.num_computed + slice.q_len;
  if (blockIdx.x + 1 == header.num_slices) arrays.query_start[blockIdx.x + 1] = header.num_tokens;
  if (slice.logit_idx < 0) return;
  arrays.logit_rows[slice.logit_idx] = slice.first_token + slice.q_len - 1;
  arrays.sample_rows[slice.logit_idx] = slice.samples != 0 ? slice.row : -1;
}

__global__ void __launch_bounds__(kThreads) metadata_kernel(const StepArrays arrays) {
  const auto& header = *reinterpret_cast<const StepHeader*>(arrays.step);
  const auto* words = reinterpret_cast<const int32_t*>(arrays.step);
  const StepSlice slice =
      reinterpret_cast<const StepSlice*>(arrays.step + sizeof(StepHeader))[blockIdx.x];
  describe_request(arrays, header, slice);
  int32_t* batch_pages = arrays.block_table + blockIdx.x * arrays.max_pages;
  if (slice.row < 0) {
    if (threadIdx.x == 0) batch_pages[0] = 0;
    return pad(arrays, slice);
  }
  int32_t* row_pages = arrays.row_block_table + slice.row * arrays.max_pages;
  const int32_t* new_pages = words + header.pages_at + slice.new_pages_at;
  for (int i = threadIdx.x; i < slice.num_new_pages; i += kThreads) {
    row_pages[slice.first_page + i] = new_pages[i];
  }
  __syncthreads();
  const int kv_len = slice.num_computed + slice.q_len;
  const int num_pages = (kv_len + arrays.page_size - 1) / arrays.page_size;
  for (int i = threadIdx.x; i < num_pages; i += kThreads) batch_pages[i] = row_pages[i];
  derive_tokens(arrays, slice, words + header.tokens_at, row_pages);
}

__global__ void append_pages_kernel(const StepArrays arrays, const PagePiece* pieces) {
  const PagePiece& piece = pieces[blockIdx.x];
  int32_t* row_pages = arrays.row_block_table + piece.row * arrays.max_pages + piece.first;
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
