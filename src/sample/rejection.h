// Verifies the drafts of speculative decoding against the target's distributions. With standard
// rejection sampling (Leviathan et al., "Fast inference from transformers via speculative
// decoding", 2023) and with block verification (Sun et al., "Block verification accelerates
// speculative decoding", 2024) the output has the target's distribution, for any distribution of
// the drafter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sample/random_choice.h"

namespace quire {

enum class RejectionMethod {
  kStandard,   // decides on each draft separately, up to the first rejected draft
  kBlock,      // decides on all drafts together, and accepts at least as many drafts on average
  kSynthetic,  // accepts drafts at given rates, for measurements: the output has no meaning
};

// How a runner verifies drafts.
struct Verification {
  RejectionMethod method = RejectionMethod::kStandard;
  // Whether the drafter samples its drafts and provides their distributions. Otherwise the drafter
  // is deterministic, and a draft is accepted if it equals the token that is sampled without
  // drafts.
  bool samples_drafts = false;
  std::vector<double> synthetic_rates = {};  // with kSynthetic: the rates of count_synthetic()
  // Whether a step omits drafts that are not worth their time: on a CPU as in
  // platform/adaptive_drafts.h, on a GPU as in platform/uniform_drafts.h.
  bool is_adaptive = false;

  bool is_synthetic() const { return method == RejectionMethod::kSynthetic; }
  // Whether drafts are verified by their probabilities instead of by comparison with sampled
  // tokens.
  bool compares_probs() const { return samples_drafts && !is_synthetic(); }
};

// The random numbers for the drafts of one step. Their key is the position of the step's first
// draft, not each draft's own position: block verification uses the numbers of drafts that it
// rejects, and a later step that drafts the same position again needs new numbers.
class DraftNoise {
 public:
  constexpr DraftNoise(uint64_t seed, uint64_t first_position)
      : seed_(seed), position_(first_position) {}

  // The noise by which the drafter samples the draft.
  constexpr TokenNoise draft(size_t draft_idx) const {
    return noise(NoiseStream::kDraft, draft_idx);
  }
  // Uniform in (0, 1).
  constexpr double acceptance(size_t draft_idx) const {
    return first_uniform(noise(NoiseStream::kAcceptance, draft_idx));
  }
  constexpr TokenNoise residual(size_t draft_idx) const {
    return noise(NoiseStream::kResidual, draft_idx);
  }
  // The noise of the token after `draft_idx` accepted drafts, if no draft at its position was
  // verified. It equals the noise without drafts.
  constexpr TokenNoise token(size_t draft_idx) const { return {seed_, position_ + draft_idx}; }
  // Uniform in (0, 1), one per step.
  constexpr double synthetic_acceptance() const {
    return first_uniform(noise(NoiseStream::kSyntheticAcceptance, 0));
  }

 private:
  constexpr TokenNoise noise(NoiseStream stream, size_t draft_idx) const {
    return {seed_, position_, stream, static_cast<uint32_t>(draft_idx)};
  }
  static constexpr double first_uniform(const TokenNoise& noise) {
    double quad[4] = {};
    noise.uniform_quad(0, quad);
    return quad[0];
  }

  uint64_t seed_;
  uint64_t position_;
};

struct Draft {
  int32_t token_id = 0;
  // The distribution, by token id, from which DraftNoise::draft() sampled the draft: [vocab_size];
  // empty: the drafter is deterministic.
  std::span<const float> probs = {};
};

// The sum of the F32 probabilities of a distribution must be this close to 1.
inline constexpr double kSumTolerance = 1e-3;

// Whether `mask`, in the form of TokenConstraint::allowed_tokens, allows the id; false if negative.
inline bool is_allowed(std::span<const uint32_t> mask, int64_t token_id) {
  constexpr size_t kBitsPerWord = 32;
  const auto id = static_cast<size_t>(token_id);
  const size_t word = id / kBitsPerWord;
  return word < mask.size() && ((mask[word] >> (id % kBitsPerWord)) & 1U) != 0;
}

// Restricts a draft's distribution to the tokens that `mask` (see is_allowed()) allows. The mask
// must allow the draft: the draft was then sampled from the restricted distribution, because
// forbidden drafts are removed. An invalid distribution does not change.
void keep_allowed(std::span<const uint32_t> mask, std::span<float> probs);

// The target's distribution of the token after the first `num_drafts` drafts; null: not defined,
// for example because of a NaN in the logits. It is called with 0, 1, 2, … drafts. A result must be
// valid until the next call.
using TargetAt = std::function<const TokenDistribution*(size_t num_drafts)>;

struct VerifiedDrafts {
  size_t num_accepted = 0;
  // The token after the accepted drafts; -1: the target has no distribution after the accepted
  // drafts.
  int32_t next_token = -1;
};

// Verifies the drafts by `method`, kStandard or kBlock. A draft whose `probs` are not a
// distribution (a NaN, a sum other than 1) or give it no probability ends the drafts: if all drafts
// before it are accepted, a token of the target replaces it.
VerifiedDrafts verify_drafts(RejectionMethod method, std::span<const Draft> drafts,
                             const TargetAt& target_at, const DraftNoise& noise);

// The number of drafts to accept, given `u`, uniform in (0, 1). rates: for each draft, the
// probability that it and all drafts before it are accepted. They must not increase.
constexpr size_t count_synthetic(std::span<const double> rates, double u) {
  size_t count = 0;
  for (const double rate : rates) count += u < rate ? 1 : 0;
  return count;
}
// Returns the rates for which the mean accepted length, 1 + accepted drafts, is `length` with the
// least variance: all rates except one are 0 or 1. `length` must be from 1 to 1 + num_drafts.
std::vector<double> synthetic_rates(double length, int num_drafts);

}  // namespace quire
