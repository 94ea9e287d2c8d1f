#include <algorithm>
#include <cmath>
#include <vector>

#include "sample/sampler.h"

namespace quire {
namespace {

struct Normalizer {
  double max_logit;
  double log_sum;  // log of the sum of exp(logit - max_logit)

  float logprob(float logit) const {
    return static_cast<float>(static_cast<double>(logit) - max_logit - log_sum);
  }
};

// Sums in FP64 and in the order of ids, so that the result depends only on the logits.
Normalizer normalize(std::span<const float> logits) {
  const double max_logit = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - max_logit);
  return {max_logit, std::log(sum)};
}

// Selects the ids of the num_top largest logits in descending order; ties are in order of id.
void select_top(std::span<const float> logits, size_t num_top, std::vector<int32_t>& top) {
  const auto before = [&](int32_t a, int32_t b) {
    const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
    return la != lb ? la > lb : a < b;
  };
  top.clear();
  for (size_t id = 0; id < logits.size() && num_top > 0; ++id) {
    if (top.size() == num_top) {
      if (logits[id] <= logits[static_cast<size_t>(top.back())]) continue;
      top.pop_back();
    }
    const auto new_id = static_cast<int32_t>(id);
    top.insert(std::ranges::upper_bound(top, new_id, before), new_id);
  }
}

}  // namespace

PositionLogprobs compute_logprobs(std::span<const float> logits, int32_t chosen, int num_top) {
  thread_local std::vector<int32_t> top;
  select_top(logits, static_cast<size_t>(std::max(num_top, 0)), top);
  const Normalizer norm = normalize(logits);
  const float chosen_logit = logits[static_cast<size_t>(chosen)];
  // As in vLLM, a token with ties gets the last of their ranks.
  const auto rank = std::ranges::count_if(logits, [&](float x) { return x >= chosen_logit; });
  PositionLogprobs all;
  all.reserve(top.size() + 1);
  all.push_back({chosen, norm.logprob(chosen_logit), static_cast<int>(rank)});
  for (const int32_t id : top) {
    const float logprob = norm.logprob(logits[static_cast<size_t>(id)]);
    all.push_back({id, logprob, static_cast<int>(all.size())});
  }
  return all;
}

}  // namespace quire
