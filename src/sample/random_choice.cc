#include "sample/random_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace quire {

namespace {

// Finds the k-th largest value in one pass, with a heap of the k largest so far. One comparison
// rejects most values.
float kth_largest(std::span<const float> logits, int k) {
  thread_local std::vector<float> heap;  // the smallest value is in front
  if (static_cast<size_t>(k) >= logits.size()) return -std::numeric_limits<float>::infinity();
  heap.assign(logits.begin(), logits.begin() + k);
  std::ranges::make_heap(heap, std::greater());
  for (const float logit : logits.subspan(static_cast<size_t>(k))) {
    if (logit <= heap.front()) continue;
    std::ranges::pop_heap(heap, std::greater());
    heap.back() = logit;
    std::ranges::push_heap(heap, std::greater());
  }
  return heap.front();
}

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.token_id < b.token_id;
}

// Weights in (0, 1] are sorted into descending buckets, 256 per factor of 2, by the leading bits of
// the double. These bits are ordered like the numbers. The last bucket holds all smaller weights.
constexpr size_t kNumBuckets = 32 * 256;

size_t bucket_of(double weight) {
  const uint64_t below_one = std::bit_cast<uint64_t>(1.0) - std::bit_cast<uint64_t>(weight);
  return std::min<size_t>(below_one >> 44, kNumBuckets - 1);
}

// Keeps the most likely tokens whose mass reaches top_p. Only the bucket in which the mass reaches
// top_p has to be sorted.
void keep_top_p(std::vector<Candidate>& kept, double top_p) {
  thread_local std::vector<double> masses;
  masses.assign(kNumBuckets, 0.0);
  for (const Candidate& candidate : kept) masses[bucket_of(candidate.weight)] += candidate.weight;
  const double target = top_p * std::accumulate(masses.begin(), masses.end(), 0.0);
  double before = 0;
  size_t border = 0;
  while (border + 1 < kNumBuckets && before + masses[border] < target) before += masses[border++];

  std::erase_if(kept, [&](const Candidate& c) { return bucket_of(c.weight) > border; });
  auto end = std::partition(kept.begin(), kept.end(),
                            [&](const Candidate& c) { return bucket_of(c.weight) < border; });
  std::sort(end, kept.end(), more_likely);
  for (; end != kept.end() && (before < target || end == kept.begin()); ++end) {
    before += end->weight;
  }
  kept.erase(end, kept.end());
}

// A cheap upper bound of exp(x) for x <= 0: 1 / exp(-x), by the first four terms of the series.
double exp_bound(double x) {
  return 1.0 / (1.0 - x * (1.0 - x * (0.5 - x * (1.0 / 6.0))));
}

}  // namespace

void filter_tokens(std::span<const float> logits, float max_logit, const TokenFilter& filter,
                   std::vector<Candidate>& kept) {
  kept.clear();
  float least = filter.top_k < 1 ? -std::numeric_limits<float>::infinity()
                                 : kth_largest(logits, filter.top_k);
  least = std::max(least, std::numeric_limits<float>::lowest());
  const double inverse = 1.0 / static_cast<double>(filter.temperature);
  for (size_t id = 0; id < logits.size(); ++id) {
    if (logits[id] < least) continue;
    const double weight = std::exp((static_cast<double>(logits[id]) - max_logit) * inverse);
    if (weight >= static_cast<double>(filter.min_p)) {
      kept.push_back({weight, static_cast<int32_t>(id)});
    }
  }
  if (filter.top_p < 1.0F) keep_top_p(kept, static_cast<double>(filter.top_p));
}

// -log(u) >= 1 - u, so a candidate that loses even with 1 - u needs no logarithm.
int32_t sample_gumbel_max(std::span<const Candidate> candidates, const TokenNoise& noise) {
  int32_t winner = -1;
  double best = -1;
  double uniform[4];
  int32_t quad = -1;
  for (const auto& [weight, token_id] : candidates) {
    if (token_id / 4 != quad) {
      quad = token_id / 4;
      noise.uniform_quad(static_cast<uint32_t>(quad), uniform);
    }
    const double u = uniform[token_id % 4];
    if (weight < best * (1.0 - u)) continue;
    const double value = weight / -std::log(u);
    if (value > best || (value == best && token_id < winner)) {
      best = value;
      winner = token_id;
    }
  }
  return winner;
}

int32_t sample_gumbel_max(std::span<const float> logits, float max_logit, float temperature,
                          const TokenNoise& noise) {
  return static_cast<int32_t>(best_gumbel(logits, 0, max_logit, temperature, noise).token_id);
}

// Samples the same token as sample_gumbel_max() for candidates, but exp_bound() avoids most
// exponentials.
ScoredToken best_gumbel(std::span<const float> logits, int32_t first_id, float max_logit,
                        float temperature, const TokenNoise& noise) {
  const double inverse = 1.0 / static_cast<double>(temperature);
  ScoredToken best;
  double uniform[4];
  const auto offset = static_cast<size_t>(first_id);
  const size_t end_id = offset + logits.size();
  for (size_t id = offset; id < end_id;) {
    noise.uniform_quad(static_cast<uint32_t>(id / 4), uniform);
    for (const size_t end = std::min(id / 4 * 4 + 4, end_id); id < end; ++id) {
      const double x = (static_cast<double>(logits[id - offset]) - max_logit) * inverse;
      const double u = uniform[id % 4];
      if (exp_bound(x) < best.score * (1.0 - u)) continue;
      const double score = std::exp(x) / -std::log(u);
      if (score > best.score) best = {score, static_cast<int64_t>(id)};
    }
  }
  return best;
}

}  // namespace quire
