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

// Drafts by lookup: the tokens that followed an earlier occurrence of a sequence's last tokens.
struct LookupConfig {
  // Bounds of the match: the number of last tokens that the earlier occurrence ends with too. The
  // longest match is taken.
  int min_match = 1;
  int max_match = 1;
  // Which of several longest matches is continued. False: the newest one. True: of the newest
  // kMaxVotes, each draft is the token that most of those have next which agree with the drafts
  // before it.
  bool by_vote = false;

  static constexpr int kMaxVotes = 64;
};

// Writes the drafts for a sequence. Beyond the sequence's end, an occurrence continues with the
// drafts themselves, so that a period repeats. Returns false, and writes nothing, if there is no
// match.
bool look_up_drafts(std::span<const int32_t> tokens, const LookupConfig& config,
                    std::span<int32_t> drafts);

}  // namespace quire
