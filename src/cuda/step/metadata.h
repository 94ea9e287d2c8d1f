// The fused metadata kernel: derives every array that the model, attention and sampling read from a
// step's block (step_inputs.h) and the persistent state on the device. platform/batch_inputs.h
// defines the arrays, and tests compare against it.
#pragma once

#include <cstdint>

#include "cuda/base/stream.h"
#include "cuda/step/step_inputs.h"
#include "model/model.h"

namespace quire::cuda {

// The arrays of one block table.
struct TableArrays {
  int window = 0;                   // pages before the window read as the padding page; 0: no
                                    // window
  int32_t* slot_pages = nullptr;    // [max_num_seqs, max_pages], persistent
  int32_t* block_table = nullptr;   // [max_num_seqs, max_pages] in the order of the spans
  int64_t* kv_slots = nullptr;      // [max_num_tokens]; -1: padding, and tokens beyond a slot's
                                    // pages
};

// Device pointers and shapes of a step's arrays.
struct StepArrays {
  const std::byte* step = nullptr;  // the block
  TableArrays tables[kMaxBlockTables];
  int num_tables = 1;
  const int32_t* num_computed = nullptr;  // [max_num_seqs]: progress of each slot that decodes
  const int32_t* next_tokens = nullptr;   // [max_num_seqs, q_len]: replace kPlaceholderToken
  int q_len = 1;                          // tokens of a span that decodes
  int64_t max_pages = 0;
  int page_size = 16;

  int32_t* token_ids = nullptr;    // [max_num_tokens]
  int32_t* positions = nullptr;    // [max_num_tokens]
  int32_t* query_start = nullptr;  // [max_num_seqs + 1]
  int32_t* seq_lens = nullptr;     // [max_num_seqs]; 0 for padding
  // Per logits row: its token, the slot of state that it is sampled for (or -1), and the number of
  // drafts of that slot's span before it.
  int32_t* logit_tokens = nullptr;    // [max_num_logit_rows]
  int32_t* sample_slots = nullptr;    // [max_num_logit_rows]
  int32_t* sample_offsets = nullptr;  // [max_num_logit_rows]
  int32_t* span_slots = nullptr;      // [max_num_seqs]: slot of each span that samples, or -1
};

// One thread block per span.
void launch_metadata(const StepArrays& arrays, int num_spans, CudaStream& stream);

// Writes pieces (device, [num_pieces]) into the persistent slots of the block tables.
void launch_append_pages(const StepArrays& arrays, const PagePiece* pieces, int num_pieces,
                         CudaStream& stream);

}  // namespace quire::cuda
