// The inputs of a drafter's model on a GPU. The device derives them from the preceding step:
//
//   StepArrays, SlotTables -- launch_first_pass --> DraftArrays
//   DraftArrays -- launch_draft_pass --> DraftArrays
//
// The first pass computes the tokens of the target's step again, in the same layout: with the same
// positions, KV slots and attention batch. Each further pass computes one token per sequence.
//
// A head that reads the target's cache (DraftHead::reads_target_cache) has no first pass. All its
// passes are at the place of the newest token.
//
//   StepArrays, SlotTables -- launch_block_pass --> DraftArrays
//
// A block drafter has one pass, with one block per sequence. It reads the target's step directly
// from StepArrays.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "cuda/base/memory.h"
#include "cuda/base/stream.h"
#include "cuda/step/step_inputs.h"
#include "quire/status.h"

namespace quire::cuda {

class DeviceSampler;

// The step that a drafter follows, after its tokens were accepted. The pointers are valid until the
// next step.
struct DraftStep {
  const StepArrays* arrays = nullptr;
  // The attention batches of the step, by block table.
  std::span<const AttentionBatch* const> batches = {};
  int num_tokens = 0;                 // token rows of the target's step
  const GraphBatch* graph = nullptr;  // the shape of the step's graph; null: it runs eagerly
  DeviceSampler* sampler = nullptr;
};

struct DraftLimits {
  StepLimits step;
  // The number of tokens by which the model reads ahead. A draft head has 1, because it reads a
  // position's hidden state together with the token after it.
  int num_ahead = 0;
  // Passes after the first. Each computes q_len tokens per sequence, at the next positions.
  int num_passes = 0;
  int q_len = 1;  // for a block drafter, the tokens of its block
  bool reads_target_cache = false;
};

// The tokens of a block, and the logits that a block drafter computes from them.
struct BlockTokens {
  int32_t mask_token_id = 0;  // for all tokens except the first
  int num_before_drafts = 0;  // see BlockLayout::num_before_drafts()
  int num_drafts = 0;         // at most DraftLimits::q_len - num_before_drafts
};

// Device pointers. Spans whose slot is padding, and spans that do not sample, are padding in the
// passes after the first.
struct DraftArrays {
  int num_ahead = 0;
  int num_passes = 0;
  int q_len = 1;
  bool reads_target_cache = false;
  const int32_t* num_computed = nullptr;  // by slot, after the step
  const int32_t* next_tokens = nullptr;   // [slots, StepArrays::max_q_len]: the newest
                                          // token, then drafts

  int32_t* step_token_ids = nullptr;  // [max_num_tokens]: tokens of the first pass
  int32_t* last_rows = nullptr;       // [max_num_seqs]: per span, the first pass's row of the last
                                      // token that the target has kept
  // The batch of q_len tokens per sequence. The arrays per token, including kv_slots, are
  // [max_num_seqs * q_len].
  int32_t* token_ids = nullptr;
  int32_t* positions = nullptr;
  int32_t* query_start = nullptr;  // [max_num_seqs + 1]: 0, q_len, 2 * q_len, …; if q_len is 1,
                                   // also the row of each span in a pass
  int32_t* seq_lens = nullptr;     // [max_num_seqs]
  TableArrays tables[kMaxBlockTables];
  // Used by a block drafter only.
  int32_t* logit_tokens = nullptr;  // [num_drafts, num_spans]: the tokens that predict each draft
  int32_t* previous_tokens = nullptr;  // [num_spans]: the token before a draft
};

// Derives the inputs of the first pass, and the block tables of the passes after it, with one
// thread block per span of the step.
void launch_first_pass(const StepArrays& step, const DraftArrays& drafts, int num_spans,
                       CudaStream& stream);
// Derives the batch of pass `pass_idx` after the first pass. The token that this pass processes
// must already be in next_tokens. With reads_target_cache, the token has the newest token's
// position, attends to the positions before it, and is not written to the cache.
void launch_draft_pass(const StepArrays& step, const DraftArrays& drafts, int pass_idx,
                       int num_spans, CudaStream& stream);

// Derives the pass of a block drafter. The block of a sequence begins with its newest token, and
// must not extend beyond its pages. Tokens beyond the pages have positions, but no other token
// attends to them. Also derives logit_tokens.
void launch_block_pass(const StepArrays& step, const DraftArrays& drafts, const BlockTokens& block,
                       int num_spans, CudaStream& stream);
// Writes the token before draft `draft_idx` of each span to previous_tokens: the newest token, or
// the draft before it.
void launch_previous_tokens(const StepArrays& step, const DraftArrays& drafts, int draft_idx,
                            int num_spans, CudaStream& stream);

// values[i] = i * stride.
void launch_count_up(int32_t* values, int count, int stride, CudaStream& stream);

// The memory of DraftArrays, and the batch of q_len tokens per sequence as attention receives it.
class DraftInputs {
 public:
  // Allocates the memory, and enqueues its initialization.
  static Result<DraftInputs> create(const DraftLimits& limits, CudaStream& stream);
  static size_t device_bytes(const DraftLimits& limits);

  DraftArrays& arrays() { return arrays_; }
  const DraftArrays& arrays() const { return arrays_; }
  // Describes the batch of the passes after `step`. Its upper bounds hold for all these passes.
  void describe(const DraftStep& step);
  std::span<const AttentionBatch* const> batches() const { return views_; }
  const AttentionBatch& batch() const { return batches_.front(); }

 private:
  static DraftArrays lay_out(BumpAllocator& allocator, const DraftLimits& limits);

  DraftLimits limits_;
  Buffer memory_;
  DraftArrays arrays_;
  std::vector<int32_t> query_start_;   // [max_num_seqs + 1]
  std::vector<int32_t> kv_len_bound_;  // [num_reqs]
  std::vector<AttentionBatch> batches_;
  std::vector<const AttentionBatch*> views_;
};

}  // namespace quire::cuda
