// The inputs of one step: everything that changes from step to step, in one small block that is
// uploaded with one copy. The metadata kernel derives everything else from it (metadata.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"

namespace quire::cuda {

// The block is [StepHeader][StepSpan × num_spans][StepAppend…][int32 pages…][int32 token ids…].
struct StepHeader {
  int32_t num_spans = 0;
  int32_t num_tokens = 0;
  // Offsets from the start of the block, in units of int32.
  int32_t appends_at = 0;
  int32_t pages_at = 0;
  int32_t tokens_at = 0;
};

// New pages in one of a slot's block tables: entries [first_page, first_page + num_pages).
struct StepAppend {
  int32_t table = 0;
  int32_t first_page = 0;
  int32_t num_pages = 0;
  int32_t pages_at = 0;  // index into the block's pages
};

struct StepSpan {
  int32_t slot = -1;          // slot of the persistent state; -1: padding
  int32_t num_computed = -1;  // of a prefill chunk; -1: the slot decodes, and the device's count is
                              // used
  int32_t q_len = 1;
  int32_t first_token = 0;
  // Entries in each of the slot's block tables. Tokens beyond them are not written, and read the
  // padding page.
  int32_t num_pages = 0;
  int32_t first_append = 0;  // index into the block's appends
  int32_t num_appends = 0;
  // Its logits rows are [first_logits_row, first_logits_row + num_logits_rows), for consecutive
  // tokens from logits_token (an index into the span) on. The rows of tokens [sample_token,
  // sample_token + num_samples) are sampled; the others are padding.
  int32_t first_logits_row = 0;
  int32_t num_logits_rows = 0;
  int32_t logits_token = 0;
  int32_t sample_token = 0;
  int32_t num_samples = 0;
};

struct StepLimits {
  int max_num_seqs = 0;
  int max_num_tokens = 0;
  int max_num_logit_rows = 0;
  int max_kv_len = 0;
  int page_size = 16;
  int decode_q_len = 1;
  std::vector<int> windows = {0};  // window per block table; 0: none
  // New pages that fit into the block; further ones are uploaded ahead of it (pages_ahead).
  int max_new_pages = 0;
};

// Bytes of the largest block within the limits.
size_t max_step_bytes(const StepLimits& limits);

// The shape of a graph's batch: every request has q_len tokens, each with a logits row.
struct GraphBatch {
  int num_reqs = 0;
  int q_len = 1;
};

// The sampled logits rows of a span.
struct SampleRange {
  size_t span_idx = 0;
  int first_row = 0;
  int num_rows = 0;
};

// The spans that sample, in the plan's order, with their logits rows. Without a graph the rows are
// packed.
std::vector<SampleRange> sample_ranges(const BatchPlan& plan, const GraphBatch* graph);

// Writes the block into `memory` (of max_step_bytes) and returns the bytes used. A graph's requests
// beyond the plan's spans are padding.
size_t write_step(const BatchPlan& plan, const StepLimits& limits, const GraphBatch* graph,
                  std::byte* memory);

// Block-table entries that do not fit into the step's block, as after a long prefix hit. They are
// uploaded ahead of it, in pieces of one size.
struct PagePiece {
  static constexpr int kMaxPages = 60;

  int32_t slot = 0;
  int32_t table = 0;
  int32_t first = 0;  // entry of that block table
  int32_t num_pages = 0;
  int32_t page_ids[kMaxPages] = {};
};
static_assert(sizeof(PagePiece) == 256);
std::vector<PagePiece> pages_ahead(const BatchPlan& plan, const StepLimits& limits);

}  // namespace quire::cuda
