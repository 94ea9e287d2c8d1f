// The decisions of the verification kernels, computed on a CPU, are those of verify_drafts().
#include "cuda/sample/verdict.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace quire::cuda {
namespace {

constexpr int kVocab = 5;
constexpr int kMaxDrafts = 4;

// Some tokens have no probability.
std::vector<float> random_probs(std::mt19937& random) {
  std::vector<float> probs(kVocab);
  float total = 0;
  while (total == 0) {
    for (float& prob : probs) {
      prob = random() % 4 == 0 ? 0.0F : static_cast<float>(random() % 1000);
      total += prob;
    }
  }
  for (float& prob : probs) prob /= total;
  return probs;
}

// A span: the target's distributions by position, and the drafts.
struct Case {
  std::vector<TokenDistribution> targets;
  std::vector<bool> has_target;
  std::vector<std::vector<float>> probs;
  std::vector<Draft> drafts;
};

Case random_case(const DraftNoise& noise, std::mt19937& random) {
  Case made;
  const size_t num_drafts = random() % (kMaxDrafts + 1);
  for (size_t i = 0; i < num_drafts; ++i) made.probs.push_back(random_probs(random));
  for (size_t i = 0; i <= num_drafts; ++i) {
    const bool is_same = i < num_drafts && random() % 4 == 0;
    const std::vector<float> weights = is_same ? made.probs[i] : random_probs(random);
    TokenDistribution& target = made.targets.emplace_back();
    for (int32_t id = 0; id < kVocab; ++id) {
      const auto weight = static_cast<double>(weights[static_cast<size_t>(id)]);
      if (weight > 0) target.candidates.push_back({weight, id});
      target.total += weight;
    }
    made.has_target.push_back(random() % 16 != 0);
    if (i == num_drafts) break;
    std::vector<Candidate> candidates;
    for (int32_t id = 0; id < kVocab; ++id) {
      candidates.push_back({static_cast<double>(made.probs[i][static_cast<size_t>(id)]), id});
    }
    const int32_t draft = sample_gumbel_max(candidates, noise.draft(i));
    if (random() % 16 == 0) made.probs[i].assign(kVocab, 0.0F);  // broken
    made.drafts.push_back({.token_id = draft, .probs = made.probs[i]});
  }
  return made;
}

double target_prob(const TokenDistribution& target, int32_t id) {
  for (const Candidate& candidate : target.candidates) {
    if (candidate.token_id == id) return candidate.weight / target.total;
  }
  return 0;
}

// The numbers that the kernels compute.
std::vector<VerifiedRow> rows_of(const Case& span) {
  std::vector<VerifiedRow> rows(span.targets.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!span.has_target[i]) continue;
    rows[i].has_target = true;
    rows[i].total = span.targets[i].total;
    if (i == span.drafts.size()) continue;
    const auto draft_prob = [&](int32_t id) {
      return static_cast<double>(span.probs[i][static_cast<size_t>(id)]);
    };
    const int32_t draft = span.drafts[i].token_id;
    rows[i].is_drawable = draft_prob(draft) > 0;
    if (!rows[i].is_drawable) continue;
    rows[i].ratio = target_prob(span.targets[i], draft) / draft_prob(draft);
    const double survival = survival_of(rows.data(), static_cast<int>(i));
    for (const auto& [weight, id] : span.targets[i].candidates) {
      const double excess = weight * (survival / rows[i].total) - draft_prob(id);
      rows[i].mass += std::max(excess, 0.0);
    }
  }
  return rows;
}

// The token that settle_kernel samples.
int32_t sample_next(const Case& span, const SpanVerdict& verdict, const DraftNoise& noise) {
  if (verdict.next == NextToken::kNone) return -1;
  const auto i = static_cast<size_t>(verdict.num_accepted);
  const TokenDistribution& target = span.targets[i];
  if (verdict.next == NextToken::kTarget) {
    return sample_gumbel_max(target.candidates, noise.token(i));
  }
  std::vector<Candidate> residual;
  for (const auto& [weight, id] : target.candidates) {
    const double excess = weight * (verdict.survival / target.total) -
                          static_cast<double>(span.probs[i][static_cast<size_t>(id)]);
    if (excess > 0) residual.push_back({excess, id});
  }
  return sample_gumbel_max(residual.empty() ? target.candidates : residual, noise.residual(i));
}

TEST(Verdict, IsThatOfVerifyDrafts) {
  std::mt19937 random(1);
  size_t num_accepted = 0;
  for (uint64_t seed = 0; seed < 50000; ++seed) {
    const DraftNoise noise(seed, 7);
    const Case span = random_case(noise, random);
    const std::vector<VerifiedRow> rows = rows_of(span);
    const TargetAt target_at = [&](size_t i) {
      return span.has_target[i] ? &span.targets[i] : nullptr;
    };
    for (const RejectionMethod method : {RejectionMethod::kStandard, RejectionMethod::kBlock}) {
      const VerifiedDrafts want = verify_drafts(method, span.drafts, target_at, noise);
      const SpanVerdict got = method == RejectionMethod::kBlock
                                  ? decide_block(rows.data(), noise)
                                  : decide_standard(rows.data(), noise);
      ASSERT_EQ(static_cast<size_t>(got.num_accepted), want.num_accepted) << "seed " << seed;
      ASSERT_EQ(sample_next(span, got, noise), want.next_token) << "seed " << seed;
      num_accepted += want.num_accepted;
    }
  }
  EXPECT_GT(num_accepted, 20000U);
}

}  // namespace
}  // namespace quire::cuda
