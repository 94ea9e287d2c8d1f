// A BatchPlan is one step as plain data: everything that a runner needs. The host computes it
// without waiting for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "quire/request.h"

namespace quire {

struct SchedulerConfig;
struct SeqRecord;

// The tokens of a sequence, contiguous. The n sequences of a request share their prompt, which may
// be long. Each sequence copies the prompt when its first output token is appended, so waiting
// sequences share one copy.
class TokenIds {
 public:
  TokenIds() = default;
  // NOLINTBEGIN(google-explicit-constructor)
  TokenIds(std::vector<int32_t> ids) : ids_(std::move(ids)) {}
  TokenIds(std::shared_ptr<const std::vector<int32_t>> prompt) : prompt_(std::move(prompt)) {}
  // NOLINTEND(google-explicit-constructor)

  const std::vector<int32_t>& get() const { return prompt_ == nullptr ? ids_ : *prompt_; }
  size_t size() const { return get().size(); }
  auto begin() const { return get().begin(); }
  auto end() const { return get().end(); }

  void push_back(int32_t id) {
    if (prompt_ != nullptr) {
      std::vector<int32_t> own;
      own.reserve(prompt_->size() + kFirstTokens);
      own.assign(prompt_->begin(), prompt_->end());
      ids_ = std::move(own);
      prompt_.reset();
    }
    ids_.push_back(id);
  }

 private:
  static constexpr size_t kFirstTokens = 64;  // room for output beside a copied prompt

  std::shared_ptr<const std::vector<int32_t>> prompt_;  // null: the sequence has its own copy
  std::vector<int32_t> ids_;
};

using SeqId = uint64_t;

// Stands for an input token that only the device has. Token i of a decoding span is the slot's i-th
// next token: the first is the most recently sampled token, the others are drafts.
inline constexpr int32_t kPlaceholderToken = -1;

// Upper bound of the draft tokens that one step verifies per sequence.
inline constexpr int kMaxDrafts = 15;
// Upper bound of the KV slots that a drafter writes per sequence and step: one per draft, and with
// a block drafter one for the newest token.
inline constexpr int kMaxDraftKvSlots = 1 + kMaxDrafts;

// How to sample one sequence: the request's parameters, with everything that needs the tokenizer or
// the model's configuration resolved to token ids.
struct SamplingSpec {
  std::shared_ptr<const SamplingParams> params;
  uint64_t seed = 0;  // params->seed + the sample's index, or drawn by the engine
  // params->stop_token_ids and the end-of-sequence ids, which min_tokens forbids.
  std::vector<int32_t> end_token_ids = {};
  std::vector<std::vector<int32_t>> bad_words_ids = {};
};

// A sequence enters the running set; the device sets up its state at `slot`.
struct SlotAdded {
  int slot = 0;
  SeqId seq_id = 0;
  TokenIds token_ids;  // all known tokens: the prompt, and after a preemption its output
  int num_prompt_tokens = 0;
  std::shared_ptr<const SamplingSpec> sampling;
};

// New pages for one block table of a slot: entries [first, first + block_ids.size()). Later entries
// become invalid: those blocks were reserved for drafts that were not accepted, and have been
// freed. Steps read only entries that an append has set and that are not before the table's window.
struct BlockTableAppend {
  int slot = 0;
  int table = 0;
  int first = 0;
  std::vector<int32_t> block_ids;
};

// One sequence's part of the step: a chunk of known tokens, or a decoding sequence's next tokens.
//
// Only the device has the length of a decoding sequence, because it depends on how many drafts the
// steps in flight propose and accept. The host plans with upper bounds and reserves blocks for
// them. A runner may leave out drafts of a decoding span, but never adds any.
//
// A sequence under a constraint is planned only when none of its steps is in flight, so the host
// has its drafts: they come with the result of its last step. The plan contains them as token ids,
// and the engine cuts num_drafts at the first draft that the constraint forbids.
struct SeqSpan {
  SeqId seq_id = 0;
  int slot = 0;
  bool decodes = false;  // the device has the slot's length and its next tokens
  // Tokens whose keys and values are in the cache before this step: exact for a chunk of known
  // tokens, an upper bound for a decoding span.
  int num_computed = 0;
  int num_tokens = 0;  // q_len: token_ids [first_token, first_token + num_tokens) of the plan
  int first_token = 0;
  // Length of each of the slot's block tables. Tokens beyond them are padding and are not written.
  int num_blocks = 0;
  // A chunk samples after its last token if the known tokens end there. A decoding span samples
  // after its first token and after each accepted draft. An embedding model returns the last
  // token's hidden state instead.
  bool samples = false;
  // The known token after a chunk that does not sample. Draft heads on a GPU read each token
  // together with the next one.
  int32_t token_after = 0;
  int num_drafts = 0;            // drafts among its tokens that may be accepted
  int num_prompt_logprobs = -1;  // >= 0: SamplingParams::prompt_logprobs, for this chunk's tokens
  // >= 0: the sequence is under a constraint. token_masks entry mask_idx + i limits the sampling
  // after i accepted drafts.
  int mask_idx = -1;
  // Whether the result should have the next step's drafts. A GPU does not report drafts that were
  // sampled (Verification::samples_drafts).
  bool reports_drafts = false;

  // Upper bound of the sequence's length after this step.
  int kv_len_bound() const { return num_computed + num_tokens; }
  // Upper bound of the tokens that this step samples.
  int max_sampled() const { return samples ? 1 + num_drafts : 0; }
};

struct BatchPlan {
  uint64_t step_id = 0;
  std::vector<int> slots_removed;  // applied before slots_added
  std::vector<SlotAdded> slots_added;
  // Applied after slots_added. The tables of a new slot are empty.
  std::vector<BlockTableAppend> block_appends;
  // Tokens per decoding sequence: the newest one, and the drafts that the step verifies.
  int decode_q_len = 1;
  // On a GPU, upper bound of the drafts per sequence that a drafter proposes after this step. The
  // next step may verify this number if exactly the sequences that sample in this step decode.
  int max_next_drafts = 0;
  // The first num_decode spans have decode_q_len tokens. They may include chunks of prompts.
  std::vector<SeqSpan> spans;
  int num_decode = 0;
  // [num_tokens]; kPlaceholderToken: only the device has it. Constrained drafts have their ids.
  std::vector<int32_t> token_ids;
  std::vector<std::vector<uint32_t>> token_masks;  // bitmaps: TokenConstraint::allowed_tokens()

  bool empty() const { return spans.empty(); }
  int num_tokens() const { return static_cast<int>(token_ids.size()); }
};

struct SampledToken {
  int32_t token_id = 0;
  PositionLogprobs logprobs;  // when requested
};

// The result of one span that samples: the accepted drafts, then one more token.
struct SpanResult {
  SeqId seq_id = 0;
  int num_drafts = 0;                             // verified, at most SeqSpan::num_drafts
  std::vector<SampledToken> tokens;               // 1 to 1 + num_drafts; empty on an error
  std::vector<PositionLogprobs> prompt_logprobs;  // of the whole prompt, once, when requested
  std::vector<float> hidden_state;                // an embedding model's, instead of tokens
  std::vector<int32_t> next_drafts;               // with SeqSpan::reports_drafts
  Status error;                                   // e.g. NaN logits: only this request fails
};

// Turns the scheduler's decisions into a plan: one span for each sequence of `running` that has
// step_tokens. A decoding span has num_drafts drafts. Spans of 1 + num_drafts tokens come first.
// Marks the block table entries and slots of the plan as sent to the device. The sequences'
// counters must already include this step.
BatchPlan build_plan(uint64_t step_id, const SchedulerConfig& config, int num_drafts,
                     std::span<SeqRecord* const> running);

}  // namespace quire
