// Builds the arrays that a model's step reads from a plan. The CPU's kernels read these arrays
// directly. On a GPU a kernel derives the same arrays on the device, and this code defines their
// expected values.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "sched/batch_plan.h"

namespace quire {

// Returns the plan's spans with each decoding span cut to the drafts that were proposed for it
// (num_proposed[slot]), for runners that do not pad. first_token is recomputed. Spans only become
// shorter, so the plan's upper bounds remain valid.
std::vector<SeqSpan> cut_drafts(const BatchPlan& plan, std::span<const int32_t> num_proposed);

// The part of a slot's device state that the inputs need.
struct SlotView {
  std::span<const std::vector<int32_t>> block_ids;  // by block table
  int num_computed = 0;                             // tokens in the cache of a slot that decodes
  std::span<const int32_t> next_tokens;             // replace kPlaceholderToken
};

// The inputs of the KV groups that share one block table.
struct TableInputs {
  // [num_tokens], the token's place in the cache. -1: the token is not written, because its
  // position is beyond the blocks of its sequence or was written before.
  std::vector<int64_t> kv_slots;
  // [num_reqs, max_pages]; 0 (the padding page) beyond a slot's blocks and before its window.
  std::vector<int32_t> block_table;
  AttentionBatch attention;  // views of all arrays
};

struct BatchInputs {
  std::vector<int32_t> token_ids;     // [num_tokens]
  std::vector<int32_t> positions;     // [num_tokens]
  std::vector<int32_t> query_start;   // [num_reqs + 1]
  std::vector<int32_t> seq_lens;      // [num_reqs]
  std::vector<int32_t> kv_len_bound;  // [num_reqs]
  std::vector<TableInputs> tables;

  // Rebuilds all arrays; memory is reused from step to step. `spans` are the plan's, or the result
  // of cut_drafts(). slots[i] belongs to spans[i]; windows[t] is the window of block table t, 0 for
  // none.
  void build(const BatchPlan& plan, std::span<const SeqSpan> spans, std::span<const SlotView> slots,
             int page_size, std::span<const int> windows);

 private:
  void add_span(std::span<const int32_t> planned_ids, const SeqSpan& span, const SlotView& slot,
                int page_size, std::span<const int> windows);
};

// The consecutive requests [first, last) of `spans` as one phase.
PhaseRange phase_range(std::span<const SeqSpan> spans, int first, int last);

}  // namespace quire
