// The drafter of speculative decoding proposes the tokens that the next step verifies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/ops.h"
#include "platform/batch_inputs.h"
#include "quire/status.h"
#include "sample/rejection.h"
#include "sched/batch_plan.h"

namespace quire {

namespace cuda {
struct DraftStep;
}

// The slots that sampled in a step, after the step's tokens were accepted. All pointers are to
// device memory.
struct DraftCall {
  const int32_t* slots = nullptr;  // [num_spans]; < 0: no proposal for this span
  int num_spans = 0;
  // On a CPU, [num_spans]: upper bound of the proposals for each span, which the next step can
  // probably verify. Null on a GPU.
  const int32_t* num_wanted = nullptr;
  // On a GPU, the number of proposals for each span, 0 to num_drafts: an upper bound of the drafts
  // that the next step verifies. With 0, the drafter does only the work that its later proposals
  // need; a draft head writes keys and values and computes no output.
  int num_next_drafts = 0;
  // By slot: number of tokens whose keys and values are in the cache.
  const int32_t* num_computed = nullptr;
  // [slots, 1 + num_drafts]. Entry 0 of a slot is its newest token, at position num_computed; the
  // drafter writes the others.
  int32_t* next_tokens = nullptr;
  // By slot: the drafter writes how many drafts it proposes, 0 to num_drafts; the entries of
  // next_tokens after them are not read. Null on a GPU, where each span has num_next_drafts
  // proposals, because all spans of a step have one length.
  int32_t* num_proposed = nullptr;
  // [slots, num_drafts]: how sure the drafter is of each draft, in [0, 1]; 0 if it cannot tell. It
  // need not be calibrated. Null on a GPU, which does not use it.
  float* confidences = nullptr;
  // On a CPU, the step itself: its spans, as they were computed, and their slots before it.
  std::span<const SeqSpan> spans = {};
  std::span<const SlotView> slot_views = {};
  // On a GPU, the step itself (cuda/step/draft_inputs.h).
  const cuda::DraftStep* device_step = nullptr;
  // F32 [slots, num_drafts, vocab_size], only with Verification::samples_drafts: the drafter
  // samples each draft by DraftNoise::draft(), where the step's first draft is at position
  // num_computed + 1, and writes the distribution that it sampled from: probabilities of all
  // tokens, with a sum of 1. Whether it proposes a draft must not depend on the token that was
  // sampled for it, because that would bias the output; it may depend on the distribution, and on
  // the drafts before.
  float* probs = nullptr;
};

// A runner verifies the drafts of one step in the next step. Without `probs`, a draft is accepted
// if it equals the token sampled at its position, so that the output is the same as without drafts,
// whatever the drafter proposes. With them, it keeps the distribution (sample/rejection.h).
class Drafter {
 public:
  virtual ~Drafter() = default;
  // Applies the plan's removed and added slots, before its step.
  virtual Status update_slots(const BatchPlan& plan, Stream& stream) = 0;
  // On a GPU, the host's part of the next read_step(): it chooses kernels and enqueues copies.
  virtual Status prepare_read(const DraftCall& /*call*/, Stream& /*stream*/) { return {}; }
  // On a GPU, called after each step, before propose(). Enqueues what later proposals need of the
  // step, such as the keys and values of its tokens.
  virtual Status read_step(const DraftCall& /*call*/, Stream& /*stream*/) { return {}; }
  // The same as prepare_read() for the next propose(). It follows read_step(), because both may run
  // by one attention plan, which holds the state of one pass.
  virtual Status prepare_proposal(const DraftCall& /*call*/, Stream& /*stream*/) { return {}; }
  // Whether graphs may replace read_step() for one batch shape, with proposals or without, and
  // propose() for one number of spans and drafts. They are captured once, and replayed after
  // prepare_read() and prepare_proposal().
  virtual bool has_graphs() const { return false; }
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
// confidences: as DraftCall::confidences, one per draft. A draft's is the share of votes for it,
// and less after a short match.
bool look_up_drafts(std::span<const int32_t> tokens, const LookupConfig& config,
                    std::span<int32_t> drafts, std::span<float> confidences);

}  // namespace quire
