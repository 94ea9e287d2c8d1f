// A drafter proposes the tokens that the next step of speculative decoding verifies. How a runner
// calls its drafter is private to the platform.
#pragma once

#include <cstdint>
#include <span>

namespace quire {

// A runner verifies the drafts of one step in the next step. A draft is accepted if it equals the
// token sampled at its position. Therefore the output is the same as without drafts, for any
// drafter.
//
// With Verification::samples_drafts, the drafter instead samples each draft by DraftNoise::draft(),
// where the step's first draft is at position num_computed + 1, and writes the distribution that it
// sampled from: probabilities of all tokens, with a sum of 1. Then the runner keeps the target's
// distribution (sample/rejection.h). Whether the drafter proposes a draft may depend on its
// distribution and on the earlier drafts, but not on its token, because that would bias the output.
//
// Each platform derives its own kind of drafter, which only its runners call.
class Drafter {
 public:
  virtual ~Drafter() = default;
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
  // Decides between several longest matches. False: the newest match gives the drafts. True: each
  // draft is the most frequent next token of the newest kMaxVotes matches; a match with a different
  // next token does not count for the later drafts.
  bool by_vote = false;

  static constexpr int kMaxVotes = 64;
};

// Writes the drafts for a sequence. A match that reaches the sequence's end continues with the
// drafts themselves, so that a period repeats. Returns false, and writes nothing, if there is no
// match. confidences: one per draft, in [0, 1]: the draft's fraction of the votes, lowered after a
// short match.
bool look_up_drafts(std::span<const int32_t> tokens, const LookupConfig& config,
                    std::span<int32_t> drafts, std::span<float> confidences);

}  // namespace quire
