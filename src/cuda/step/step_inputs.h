// One step as it travels to the device: all that changes from step to step, in one small block that
// is copied at once. The metadata kernel derives everything else from it (metadata.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"

namespace quire::cuda {

// The block is [StepHeader][StepSlice × num_slices][int32 pages…][int32 token ids…].
struct StepHeader {
  int32_t num_slices = 0;
  int32_t num_tokens = 0;
  int32_t pages_at = 0;   // in int32 from the block's begin
  int32_t tokens_at = 0;  // likewise
};

struct StepSlice {
  int32_t row = -1;  // of the persistent state; -1: padding
  int32_t num_computed = 0;
  int32_t q_len = 1;
  int32_t first_token = 0;
  // New pages of the row's block table: entries [first_page, first_page + num_new_pages).
  int32_t first_page = 0;
  int32_t num_new_pages = 0;
  int32_t new_pages_at = 0;  // index into the block's pages
  int32_t logit_idx = -1;    // which row of logits its last token takes; -1: none
  int32_t samples = 0;       // whether that row is sampled
};

struct StepLimits {
  int max_num_seqs = 0;
  int max_num_tokens = 0;
  // New pages that travel inside the block; what is more goes ahead of it (pages_ahead).
  int max_new_pages = 0;
};

// Bytes of the largest block within the limits.
size_t max_step_bytes(const StepLimits& limits);

// The block, written into `memory` (of max_step_bytes); returns the bytes used. num_slices is at
// least the plan's: the rest is padding, one token a slice, for a graph of that many requests,
// where also every slice takes the row of logits of its own number.
size_t write_step(const BatchPlan& plan, const StepLimits& limits, int num_slices, bool for_graph,
                  std::byte* memory);

// Block-table entries that do not fit into the step's block, which a prefix hit may bring: they
// travel before it, cut into pieces of one size.
struct PagePiece {
  static constexpr int kMaxPages = 61;

  int32_t row = 0;
  int32_t first = 0;  // entry of the row's block table
  int32_t num_pages = 0;
  int32_t page_ids[kMaxPages] = {};
};
static_assert(sizeof(PagePiece) == 256);
std::vector<PagePiece> pages_ahead(const BatchPlan& plan, const StepLimits& limits);

}  // namespace quire::cuda
