#include "sample/random_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

namespace quire {

namespace {

using ::testing::ElementsAre;

constexpr float kNone = -std::numeric_limits<float>::infinity();

std::set<int32_t> kept_by(const std::vector<float>& logits, const TokenFilter& filter) {
  std::vector<Candidate> kept;
  filter_tokens(logits, *std::ranges::max_element(logits), filter, kept);
  std::set<int32_t> ids;
  for (const Candidate& candidate : kept) ids.insert(candidate.token_id);
  EXPECT_EQ(ids.size(), kept.size());
  return ids;
}

// Implements vLLM's definition in fp64: mask by min-p, mask below the k-th largest, then walk down
// the sorted probabilities.
std::set<int32_t> kept_by_reference(const std::vector<float>& logits, const TokenFilter& filter) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
  const double max_logit = logits[order[0]];
  const auto weight = [&](int32_t id) {
    return std::exp((logits[id] - max_logit) / static_cast<double>(filter.temperature));
  };
  std::vector<int32_t> left;
  for (const int32_t id : order) {
    const auto k = static_cast<size_t>(filter.top_k);
    if (logits[id] == kNone || weight(id) < static_cast<double>(filter.min_p)) continue;
    if (filter.top_k > 0 && k < order.size() && logits[id] < logits[order[k - 1]]) continue;
    left.push_back(id);
  }
  double total = 0;
  for (const int32_t id : left) total += weight(id);
  std::set<int32_t> kept;
  double before = 0;
  for (const int32_t id : left) {
    if (!kept.empty() && filter.top_p < 1 && before >= static_cast<double>(filter.top_p) * total) {
      break;
    }
    before += weight(id);
    kept.insert(id);
  }
  return kept;
}

TEST(TokenFilter, TopKKeepsTiesAtTheBorder) {
  EXPECT_THAT(kept_by({5, 3, 4, 3, 1}, {.top_k = 3}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept_by({5, 3, 4, 3, 1}, {.top_k = 1}), ElementsAre(0));
  EXPECT_THAT(kept_by({5, 3, 4}, {.top_k = 9}), ElementsAre(0, 1, 2));
}

TEST(TokenFilter, TopPKeepsAtLeastOneAndBreaksTiesById) {
  EXPECT_THAT(kept_by({1, 1, 1, 1}, {.top_p = 0.5F}), ElementsAre(0, 1));
  EXPECT_THAT(kept_by({1, 1, 1, 1}, {.top_p = 0.51F}), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept_by({1, 9, 1, 1}, {.top_p = 1e-9F}), ElementsAre(1));
}

TEST(TokenFilter, MinPIsRelativeToTheMostLikely) {
  const float half = std::log(0.5F), tenth = std::log(0.1F);
  EXPECT_THAT(kept_by({0, half, tenth}, {.min_p = 0.4F}), ElementsAre(0, 1));
  EXPECT_THAT(kept_by({0, half, tenth}, {.temperature = 4, .min_p = 0.4F}), ElementsAre(0, 1, 2));
  EXPECT_THAT(kept_by({0, half, tenth}, {.min_p = 1}), ElementsAre(0));
}

TEST(TokenFilter, ForbiddenTokensStayForbidden) {
  EXPECT_THAT(kept_by({kNone, 2, kNone, 1}, {.top_k = 3}), ElementsAre(1, 3));
  EXPECT_THAT(kept_by({kNone, 2, kNone, 1}, {.top_p = 0.9999F}), ElementsAre(1, 3));
}

TEST(TokenFilter, AgreesWithTheDefinition) {
  std::mt19937 rng(11);
  for (int round = 0; round < 400; ++round) {
    std::vector<float> logits(1 + rng() % 700);
    const bool coarse = rng() % 2 == 0;  // many ties
    for (float& x : logits) {
      x = coarse ? static_cast<float>(rng() % 8) : static_cast<float>(rng() % 100000) / 9000.F;
      if (rng() % 16 == 0) x = kNone;
    }
    logits[rng() % logits.size()] = 3;
    TokenFilter filter;
    filter.temperature = 0.1F + static_cast<float>(rng() % 30) / 10.F;
    if (rng() % 2 == 0) filter.top_k = 1 + static_cast<int>(rng() % 300);
    if (rng() % 2 == 0) filter.top_p = 0.01F + static_cast<float>(rng() % 98) / 100.F;
    if (rng() % 2 == 0) filter.min_p = static_cast<float>(rng() % 100) / 100.F;
    ASSERT_EQ(kept_by(logits, filter), kept_by_reference(logits, filter)) << "round " << round;
  }
}

double uniform(uint64_t seed, uint64_t position, int32_t token_id) {
  double quad[4];
  TokenNoise(seed, position).uniform_quad(static_cast<uint32_t>(token_id / 4), quad);
  return quad[token_id % 4];
}

TEST(TokenNoise, DependsOnSeedPositionAndTokenAlone) {
  constexpr uint64_t kHigh = uint64_t{1} << 32;
  EXPECT_EQ(uniform(7, 100, 3), uniform(7, 100, 3));
  const std::set<double> all = {
      uniform(7, 100, 3), uniform(7, 100, 4),         uniform(7, 100, 7),        uniform(8, 100, 3),
      uniform(7, 101, 3), uniform(7 + kHigh, 100, 3), uniform(7, 100 + kHigh, 3)};
  EXPECT_EQ(all.size(), 7U);
}

TEST(GumbelMax, TheFirstPassOverAVocabularyChangesNothing) {
  std::mt19937 rng(5);
  std::normal_distribution<float> normal(0, 4);
  for (uint64_t position = 0; position < 300; ++position) {
    std::vector<float> logits(1 + rng() % 999);
    for (float& x : logits) x = rng() % 20 == 0 ? kNone : normal(rng);
    logits[rng() % logits.size()] = 1;
    const float max_logit = *std::ranges::max_element(logits);
    const float temperature = position % 3 == 0 ? 1.F : 0.3F + static_cast<float>(position) / 100;
    std::vector<Candidate> all;
    filter_tokens(logits, max_logit, {.temperature = temperature}, all);
    const TokenNoise noise(99, position);
    ASSERT_EQ(sample_gumbel_max(logits, max_logit, temperature, noise),
              sample_gumbel_max(all, noise));
    std::ranges::reverse(all);
    ASSERT_EQ(sample_gumbel_max(logits, max_logit, temperature, noise),
              sample_gumbel_max(all, noise))
        << "the order matters";
    const size_t border = rng() % (logits.size() + 1);
    const std::span parts(logits);
    ScoredToken best = best_gumbel(parts.subspan(border), static_cast<int32_t>(border), max_logit,
                                   temperature, noise);
    best.add(best_gumbel(parts.first(border), 0, max_logit, temperature, noise));
    ASSERT_EQ(best.token_id, sample_gumbel_max(logits, max_logit, temperature, noise))
        << "a part that begins at " << border;
  }
}

// Pearson's chi-square of samples at many positions against the softmax of the tokens that the
// filter keeps.
double chi_square(const std::vector<float>& logits, const TokenFilter& filter, int num_draws) {
  const float max_logit = *std::ranges::max_element(logits);
  const std::set<int32_t> kept = kept_by_reference(logits, filter);
  std::vector<int> counts(logits.size());
  std::vector<Candidate> candidates;
  for (int i = 0; i < num_draws; ++i) {
    const TokenNoise noise(2024, static_cast<uint64_t>(i));
    if (filter.keeps_all()) {
      ++counts[sample_gumbel_max(logits, max_logit, filter.temperature, noise)];
    } else {
      filter_tokens(logits, max_logit, filter, candidates);
      ++counts[sample_gumbel_max(candidates, noise)];
    }
  }
  double total = 0;
  for (const int32_t id : kept) {
    total += std::exp((logits[id] - max_logit) / static_cast<double>(filter.temperature));
  }
  double chi = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!kept.contains(static_cast<int32_t>(id))) {
      EXPECT_EQ(counts[id], 0);
      continue;
    }
    const double expected =
        num_draws * std::exp((logits[id] - max_logit) / static_cast<double>(filter.temperature)) /
        total;
    chi += (counts[id] - expected) * (counts[id] - expected) / expected;
  }
  return chi;
}

// Seeds are fixed, so the results never change. The bounds are the 99.9 % points of chi-square.
TEST(GumbelMax, DrawsInProportion) {
  std::vector<float> logits(20);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 7) % 20) / 6.F;
  EXPECT_LT(chi_square(logits, {}, 40000), 43.8) << "19 degrees of freedom";
  EXPECT_LT(chi_square(logits, {.temperature = 0.5F}, 40000), 43.8);
  EXPECT_LT(chi_square(logits, {.temperature = 3}, 40000), 43.8);
  EXPECT_LT(chi_square(logits, {.top_k = 8}, 40000), 24.3) << "7 degrees of freedom";
  EXPECT_LT(chi_square(logits, {.top_p = 0.7F}, 40000), 27.9) << "at most 9";
  EXPECT_LT(chi_square(logits, {.min_p = 0.3F}, 40000), 24.3) << "at most 7";
  EXPECT_LT(
      chi_square(logits, {.temperature = 1.5F, .top_k = 10, .top_p = 0.8F, .min_p = 0.2F}, 40000),
      27.9);
}

// Requests that differ only in their seed give independent samples at the same position.
TEST(GumbelMax, SeedsAreIndependent) {
  const std::vector<float> logits(16, 1.F);
  std::vector<int> pairs(256);
  constexpr int kDraws = 51200;
  for (int i = 0; i < kDraws; ++i) {
    const auto seed = static_cast<uint64_t>(i);
    ++pairs[16 * sample_gumbel_max(logits, 1, 1, TokenNoise(seed, 5)) +
            sample_gumbel_max(logits, 1, 1, TokenNoise(seed + 1, 5))];
  }
  double chi = 0;
  for (const int count : pairs) chi += (count - 200.0) * (count - 200.0) / 200.0;
  EXPECT_LT(chi, 330.5) << "255 degrees of freedom";
}

// The known results of the Random123 distribution (kat_vectors, philox4x32 10).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformsAreInsideTheOpenInterval) {
  EXPECT_GT(open_uniform(0), 0.0);
  EXPECT_LT(open_uniform(0xffffffff), 1.0);
  EXPECT_DOUBLE_EQ(open_uniform(0x80000000), 0.5 + 0x1p-33);
}

}  // namespace

}  // namespace quire
