// One step as plain data: everything that `run` needs, all of it known without asking the device.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "quire/request.h"
#include "sched/token_ids.h"

namespace quire {

using SeqId = uint64_t;

// Stands for an input token that only the device has: token i of a decoding slice is the row's i-th
// next token, of which the first was sampled last and the others are drafts.
inline constexpr int32_t kPlaceholderToken = -1;

// The most draft tokens that one step verifies per sequence.
inline constexpr int kMaxDrafts = 15;

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

// New pages of one of a row's block tables: entries [first, first + block_ids.size()). The entries
// behind them are void: those blocks were reserved for drafts that were not accepted, and given
// back. Entries that no append has named, or that the table's window has left behind, are not read.
struct BlockTableAppend {
  int row = 0;
  int table = 0;
  int first = 0;
  std::vector<int32_t> block_ids;
};

// One sequence's part of the step: a chunk of known tokens, or a decoding sequence's next tokens.
//
// How far a decoding sequence has come is known to the device alone, because it depends on how many
// drafts the steps in flight accept. The host plans with upper bounds; blocks are reserved for
// them.
struct SeqSlice {
  SeqId seq_id = 0;
  int row = 0;
  bool decodes = false;  // the row's progress and its next tokens are the device's
  // Tokens whose keys and values are in the cache before this step: exact for a chunk, otherwise an
  // upper bound.
  int num_computed = 0;
  int num_tokens = 0;  // q_len: token_ids [first_token, first_token + num_tokens) of the plan
  int first_token = 0;
  // Entries of each of the row's block tables. Tokens beyond them are padding, and are not written.
  int num_blocks = 0;
  // A chunk's last token is sampled from where the known tokens end. A decoding slice samples from
  // its first token and, while the sampled token equals the next draft, from that draft on.
  bool samples = false;
  int num_drafts = 0;            // drafts among its tokens that may be accepted
  int num_prompt_logprobs = -1;  // >= 0: log probabilities of this chunk's prompt tokens are wanted
  int mask_idx = -1;             // >= 0: only these of the plan's token_masks may be sampled

  // Upper bound of its length once this step has run.
  int kv_len_bound() const { return num_computed + num_tokens; }
  // Upper bound of the tokens that this step brings.
  int max_sampled() const { return samples ? 1 + num_drafts : 0; }
};

struct BatchPlan {
  uint64_t step_id = 0;
  std::vector<int> rows_removed;  // before rows_added
  std::vector<RowAdded> rows_added;
  std::vector<BlockTableAppend> block_appends;  // after rows_added; a new row starts empty
  // Short queries of one length, that of a decode, come first: num_decode of them.
  std::vector<SeqSlice> slices;
  int num_decode = 0;
  std::vector<int32_t> token_ids;  // [num_tokens], kPlaceholderToken where the device knows better
  std::vector<std::vector<uint32_t>> token_masks;  // each as TokenConstraint::allowed_tokens

  bool empty() const { return slices.empty(); }
  int num_tokens() const { return static_cast<int>(token_ids.size()); }
};

struct SampledToken {
  int32_t token_id = 0;
  PositionLogprobs logprobs;  // when asked for
};

// Results of one slice that samples: the accepted drafts, then one more token.
struct SampledSpan {
  SeqId seq_id = 0;
  std::vector<SampledToken> tokens;  // 1 to SeqSlice::max_sampled(); none with an error
  std::vector<PositionLogprobs> prompt_logprobs;  // of this chunk, when asked for
  Status error;  // e.g. logits that are NaN: only this request fails
};

}  // namespace quire
