#include "sample/rejection.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace quire {
namespace {

bool is_distribution(std::span<const float> probs) {
  double sum = 0;
  bool is_valid = true;
  for (const float prob : probs) {
    is_valid &= prob >= 0 && prob <= 1;  // false for NaN
    sum += static_cast<double>(prob);
  }
  return is_valid && std::abs(sum - 1) <= kSumTolerance;
}

// Whether the draft may have been sampled from its distribution. The whole row is checked, because
// a check that depended only on the drafted token would favor the other tokens.
bool is_drawable(const Draft& draft) {
  if (draft.probs.empty()) return true;
  const auto id = static_cast<size_t>(draft.token_id);
  if (draft.token_id < 0 || id >= draft.probs.size() || !(draft.probs[id] > 0)) return false;
  return is_distribution(draft.probs);
}

double draft_prob(const Draft& draft, int32_t token_id) {
  if (draft.probs.empty()) return token_id == draft.token_id ? 1.0 : 0.0;
  return static_cast<double>(draft.probs[static_cast<size_t>(token_id)]);
}

// The draft's probability in the target's distribution divided by its probability in its own
// distribution.
double likelihood_ratio(const TokenDistribution& target, const Draft& draft) {
  const auto found = std::ranges::find(target.candidates, draft.token_id, &Candidate::token_id);
  if (found == target.candidates.end()) return 0;
  return found->weight / target.total / draft_prob(draft, draft.token_id);
}

// Returns the mass by which `survival` times the target's distribution exceeds the draft's, and
// writes its tokens to `residual`. If rounding leaves no mass, the distributions are equal, and the
// residual is the target's distribution.
double make_residual(const TokenDistribution& target, const Draft& draft, double survival,
                     std::vector<Candidate>& residual) {
  const double scale = survival / target.total;
  double mass = 0;
  residual.clear();
  for (const auto& [weight, token_id] : target.candidates) {
    const double excess = weight * scale - draft_prob(draft, token_id);
    if (excess <= 0) continue;
    residual.push_back({excess, token_id});
    mass += excess;
  }
  if (residual.empty()) residual = target.candidates;
  return mass;
}

VerifiedDrafts verify_standard(std::span<const Draft> drafts, const TargetAt& target_at,
                               const DraftNoise& noise) {
  for (size_t i = 0;; ++i) {
    const TokenDistribution* target = target_at(i);
    if (target == nullptr) return {.num_accepted = i};
    if (i == drafts.size() || !is_drawable(drafts[i])) {
      return {i, sample_gumbel_max(target->candidates, noise.token(i))};
    }
    if (noise.acceptance(i) < likelihood_ratio(*target, drafts[i])) continue;
    thread_local std::vector<Candidate> residual;
    make_residual(*target, drafts[i], 1, residual);
    return {i, sample_gumbel_max(residual, noise.residual(i))};
  }
}

// For each i, a separate random number decides whether the first i drafts are accepted, and the
// largest accepted i counts. Therefore all drafts are examined, up to the first draft that the
// target forbids.
VerifiedDrafts verify_block(std::span<const Draft> drafts, const TargetAt& target_at,
                            const DraftNoise& noise) {
  thread_local std::vector<Candidate> residual;
  thread_local std::vector<Candidate> kept;  // the residual after the accepted drafts
  size_t num_accepted = 0;
  // The paper's p_i: the probability that the first i drafts are accepted if no more follow.
  double survival = 1;
  for (size_t i = 0;; ++i) {
    const TokenDistribution* target = target_at(i);
    if (target == nullptr || i == drafts.size() || !is_drawable(drafts[i])) {
      if (i > 0 && noise.acceptance(i - 1) > survival) break;
      if (target == nullptr) return {.num_accepted = i};
      return {i, sample_gumbel_max(target->candidates, noise.token(i))};
    }
    const double mass = make_residual(*target, drafts[i], survival, residual);
    if (i == 0 || noise.acceptance(i - 1) * (mass + 1 - survival) <= mass) {
      num_accepted = i;
      std::swap(kept, residual);
    }
    survival = std::min(1.0, survival * likelihood_ratio(*target, drafts[i]));
    if (survival == 0) break;
  }
  return {num_accepted, sample_gumbel_max(kept, noise.residual(num_accepted))};
}

}  // namespace

void keep_allowed(std::span<const uint32_t> mask, std::span<float> probs) {
  if (!is_distribution(probs)) return;
  double allowed = 0;
  for (int64_t id = 0; id < std::ssize(probs); ++id) {
    if (is_allowed(mask, id)) allowed += static_cast<double>(probs[id]);
  }
  for (int64_t id = 0; id < std::ssize(probs); ++id) {
    const double prob = static_cast<double>(probs[id]) / allowed;
    probs[id] = is_allowed(mask, id) ? static_cast<float>(std::min(prob, 1.0)) : 0.0F;
  }
}

VerifiedDrafts verify_drafts(RejectionMethod method, std::span<const Draft> drafts,
                             const TargetAt& target_at, const DraftNoise& noise) {
  QUIRE_CHECK(method != RejectionMethod::kSynthetic,
              "[sample] synthetic acceptance compares no distributions");
  return method == RejectionMethod::kBlock ? verify_block(drafts, target_at, noise)
                                           : verify_standard(drafts, target_at, noise);
}

std::vector<double> synthetic_rates(double length, int num_drafts) {
  std::vector<double> rates;
  for (int i = 0; i < num_drafts; ++i) rates.push_back(std::clamp(length - 1 - i, 0.0, 1.0));
  return rates;
}

}  // namespace quire
