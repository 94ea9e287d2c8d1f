// The drafter of speculative decoding proposes the tokens that the next step verifies.
#pragma once

#include <cstdint>
#include <span>

#include "ops/ops.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

// The slots that sampled in a step, after the step's tokens were accepted. All pointers are to
// device memory.
struct DraftCall {
  const int32_t* slots = nullptr;  // [num_spans]; < 0: no proposal for this span
  int num_spans = 0;
  // By slot: number of tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [slots, 1 + num_drafts]. Entry 0 of a slot is its newest token, at position num_computed; the
  // drafter writes the others.
  int32_t* next_tokens = nullptr;
};

// A runner verifies the drafts of one step in the next step: a draft is accepted if it equals the
// token sampled at its position. Therefore the output is the same as without drafts, whatever the
// drafter proposes.
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Applies the plan's removed and added slots, before its step.
  virtual Status update_slots(const BatchPlan& plan, Stream& stream) = 0;
  // Enqueues the proposals that the next step verifies. A proposal may be any token id of the
  // vocabulary.
  virtual Status propose(const DraftCall& call, Stream& stream) = 0;
};

struct DrafterLimits {
  int num_drafts = 0;  // per slot and step
  int max_num_seqs = 0;
  int max_model_len = 0;
  int vocab_size = 0;
};

// Drafts by lookup: a match is an earlier occurrence of the sequence's last tokens, and the drafts
// are the tokens that followed it. The longest match is taken.
struct LookupConfig {
  // Bounds of a match's length, in tokens.
  int min_match = 1;
  int max_match = 1;
  // Decides between several longest matches. False: the newest one is continued. True: the newest
  // kMaxVotes vote on each draft, which is the most frequent next token; a match with another next
  // token does not vote on the later drafts.
  bool by_vote = false;

  static constexpr int kMaxVotes = 64;
};

// Writes the drafts for a sequence. A match that reaches the sequence's end continues with the
// drafts themselves, so that a period repeats. Returns false, and writes nothing, if there is no
// match.
bool look_up_drafts(std::span<const int32_t> tokens, const LookupConfig& config,
                    std::span<int32_t> drafts);

}  // namespace quire
