#include "sample/sampler.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sample/logits_error.h"
#include "sample/logits_rules.h"
#include "sample/random_choice.h"

namespace quire {
namespace {

// vLLM's threshold between greedy and random sampling.
constexpr float kGreedyBelow = 1e-5F;

struct Largest {
  float logit = -std::numeric_limits<float>::infinity();
  bool has_nan = false;
};

// Finds the largest in one pass with independent lanes, so that the compiler can use vectors. NaN
// never compares greater.
Largest find_largest(std::span<const float> logits) {
  constexpr size_t kLanes = 32;
  float best[kLanes];
  int is_nan[kLanes] = {};
  std::ranges::fill(best, -std::numeric_limits<float>::infinity());
  size_t at = 0;
  for (; at + kLanes <= logits.size(); at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const float x = logits[at + lane];
      best[lane] = x > best[lane] ? x : best[lane];
      is_nan[lane] |= static_cast<int>(x != x);
    }
  }
  Largest largest;
  const auto take = [&](float x) { largest.logit = x > largest.logit ? x : largest.logit; };
  for (size_t lane = 0; lane < kLanes; ++lane) {
    take(best[lane]);
    largest.has_nan |= is_nan[lane] != 0;
  }
  for (; at < logits.size(); ++at) {
    take(logits[at]);
    largest.has_nan |= logits[at] != logits[at];
  }
  return largest;
}

Status check_largest(const Largest& largest, std::span<const float> logits, int64_t position) {
  if (largest.has_nan) {
    const auto at = std::ranges::find_if(logits, [](float x) { return x != x; });
    return nan_logit(position, at - logits.begin());
  }
  if (largest.logit == std::numeric_limits<float>::infinity()) return infinite_logit(position);
  if (largest.logit == -std::numeric_limits<float>::infinity()) return no_finite_logit(position);
  return {};
}

void keep_masked(std::span<float> logits, std::span<const uint32_t> mask) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool may_come = i / 32 < mask.size() && ((mask[i / 32] >> (i % 32)) & 1U) != 0;
    if (!may_come) logits[i] = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace

struct SamplerState::Impl {
  std::shared_ptr<const SamplingParams> params;
  uint64_t seed;
  int vocab_size;
  int64_t num_tokens;  // known tokens; also the position of the next one
  int32_t last_token;
  LogitsRules rules;

  int32_t choose(std::span<const float> logits, float max_logit) const;
};

SamplerState::SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
                           std::span<const int32_t> token_ids, int num_prompt_tokens,
                           std::vector<int32_t> stop_token_ids,
                           std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size) {
  LogitsRules rules(params, token_ids, num_prompt_tokens, std::move(stop_token_ids),
                    std::move(bad_words_ids), vocab_size);
  impl_ = std::make_unique<Impl>(Impl{.params = std::move(params),
                                      .seed = seed,
                                      .vocab_size = vocab_size,
                                      .num_tokens = static_cast<int64_t>(token_ids.size()),
                                      .last_token = token_ids.empty() ? 0 : token_ids.back(),
                                      .rules = std::move(rules)});
}

SamplerState::~SamplerState() = default;
SamplerState::SamplerState(SamplerState&&) noexcept = default;
SamplerState& SamplerState::operator=(SamplerState&&) noexcept = default;

int32_t SamplerState::last_token() const {
  return impl_->last_token;
}

int SamplerState::num_tokens() const {
  return static_cast<int>(impl_->num_tokens);
}

Status check_logits(std::span<const float> logits, int64_t position) {
  return check_largest(find_largest(logits), logits, position);
}

Status SamplerState::sample(std::span<float> logits, std::optional<std::span<const uint32_t>> mask,
                            int32_t& token_id, PositionLogprobs& logprobs) {
  Impl& state = *impl_;
  QUIRE_CHECK(logits.size() == static_cast<size_t>(state.vocab_size),
              "[sample] one logit for each token of the vocabulary");
  thread_local std::vector<float> raw_logits;
  Largest largest = find_largest(logits);
  QUIRE_RETURN_IF_ERROR(check_largest(largest, logits, state.num_tokens));
  // Log probabilities are computed from the model's logits, before the request's rules are applied.
  std::span<const float> raw = logits;
  if (state.rules.changes_logits() || mask) {
    if (state.params->logprobs) {
      raw_logits.assign(logits.begin(), logits.end());
      raw = raw_logits;
    }
    if (mask) keep_masked(logits, *mask);
    state.rules.apply(logits);
    largest = find_largest(logits);
    const bool is_none_left = largest.logit == -std::numeric_limits<float>::infinity();
    if (is_none_left && !largest.has_nan) return no_token_allowed(state.num_tokens);
    QUIRE_RETURN_IF_ERROR(check_largest(largest, logits, state.num_tokens));
  }
  token_id = state.choose(logits, largest.logit);
  if (state.params->logprobs) logprobs = compute_logprobs(raw, token_id, *state.params->logprobs);
  state.rules.append_output(token_id);
  state.last_token = token_id;
  ++state.num_tokens;
  return {};
}

int32_t SamplerState::Impl::choose(std::span<const float> logits, float max_logit) const {
  if (params->temperature < kGreedyBelow) {
    return static_cast<int32_t>(std::ranges::find(logits, max_logit) - logits.begin());
  }
  const TokenNoise noise(seed, static_cast<uint64_t>(num_tokens));
  const TokenFilter filter = {.temperature = params->temperature,
                              .top_k = params->top_k,
                              .top_p = params->top_p,
                              .min_p = params->min_p};
  if (filter.keeps_all()) return sample_gumbel_max(logits, max_logit, params->temperature, noise);
  thread_local std::vector<Candidate> candidates;
  filter_tokens(logits, max_logit, filter, candidates);
  return sample_gumbel_max(candidates, noise);
}

}  // namespace quire
