// One step as plain data: everything that `run` needs, all of it known without asking the device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "quire/request.h"
#include "sched/token_ids.h"

namespace quire {

using SeqId = uint64_t;

// Stands for the token that this row sampled last, which the host may not have seen yet. The
// device fills it in.
inline constexpr int32_t kPlaceholderToken = -1;

// What one sequence is sampled by: the request's parameters, with everything that needed the
// tokenizer or the model's configuration already resolved to ids.
struct SamplingSpec {
  std::shared_ptr<const SamplingParams> params;
  uint64_t seed = 0;  // params->seed + index of n, or drawn by the engine
  std::vector<int32_t> stop_token_ids =
      {};  // what min_tokens forbids: end-of-sequence and stop ids
  std::vector<std::vector<int32_t>> bad_words_ids = {};
};

// A sequence enters the running set: the device makes room for its state at `row`.
struct RowAdded {
  int row = 0;
  SeqId seq_id = 0;
  TokenIds token_ids;  // all known tokens: the prompt, and after a preemption its output
  int num_prompt_tokens = 0;
  std::shared_ptr<const SamplingSpec> sampling;
};

// New pages of a row's block table: entries [first, first + block_ids.size()).
struct BlockTableAppend {
  int row = 0;
  int first = 0;
  std::vector<int32_t> block_ids;
};

// One sequence's part of the step.
struct SeqSlice {
  SeqId seq_id = 0;
  int row = 0;
  int num_computed = 0;  // tokens whose keys and values are in the cache before this step
  int num_tokens = 0;    // q_len: token_ids [first_token, first_token + num_tokens) of the plan
  int first_token = 0;
  bool samples = false;          // the last token's logits are sampled: the known tokens end here
  int num_prompt_logprobs = -1;  // >= 0: log probabilities of this chunk's prompt tokens are wanted
  int mask_idx = -1;             // >= 0: only these of the plan's token_masks may be sampled
};

struct BatchPlan {
  uint64_t step_id = 0;
  std::vector<int> rows_removed;  // before rows_added
  std::vector<RowAdded> rows_added;
  std::vector<BlockTableAppend> block_appends;  // after rows_added; a new row starts empty
  // Uniform short queries (decode) first, then the rest: num_decode of them are in the first range.
  std::vector<SeqSlice> slices;
  int num_decode = 0;
  std::vector<int32_t> token_ids;  // [num_tokens], kPlaceholderToken where the device knows better
  std::vector<std::vector<uint32_t>> token_masks;  // each as TokenConstraint::allowed_tokens

  bool empty() const { return slices.empty(); }
  int num_tokens() const { return static_cast<int>(token_ids.size()); }
};

// What comes back from the device for one sampled row.
struct SampledToken {
  SeqId seq_id = 0;
  int32_t token_id = 0;
  PositionLogprobs logprobs;                      // when asked for
  std::vector<PositionLogprobs> prompt_logprobs;  // of this chunk, when asked for
  Status error;  // e.g. logits that are NaN: only this request fails
};

}  // namespace quire
