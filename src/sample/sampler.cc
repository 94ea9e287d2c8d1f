#include "sample/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check.h"
#include "sample/random_choice.h"

namespace quire {
namespace {

// Also the logit of a token that cannot be sampled.
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

struct Largest {
  float logit = kMinusInfinity;
  bool has_nan = false;
};

// Finds the largest logit in one pass with independent lanes, so that the compiler can vectorize.
// NaN never compares greater.
Largest find_largest(std::span<const float> logits) {
  constexpr size_t kLanes = 32;
  float best[kLanes];
  int is_nan[kLanes] = {};
  std::ranges::fill(best, kMinusInfinity);
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

int32_t first_nan(std::span<const float> logits) {
  const auto at = std::ranges::find_if(logits, [](float x) { return x != x; });
  return static_cast<int32_t>(at - logits.begin());
}

Status check_largest(float logit, int64_t position) {
  if (logit == std::numeric_limits<float>::infinity()) return infinite_logit(position);
  if (logit == kMinusInfinity) return no_finite_logit(position);
  return {};
}

Status check_largest(const Largest& largest, std::span<const float> logits, int64_t position) {
  if (largest.has_nan) return nan_logit(position, first_nan(logits));
  return check_largest(largest.logit, position);
}

bool is_greedy(const SamplingParams& params) {
  return params.temperature < kGreedyBelow;
}

TokenFilter token_filter(const SamplingParams& params) {
  return {.temperature = params.temperature,
          .top_k = params.top_k,
          .top_p = params.top_p,
          .min_p = params.min_p};
}

int32_t first_of(std::span<const float> logits, float max_logit) {
  return static_cast<int32_t>(std::ranges::find(logits, max_logit) - logits.begin());
}

// The candidates among logits that have passed check_largest().
void find_candidates(std::span<const float> logits, float max_logit, const SamplingParams& params,
                     std::vector<Candidate>& candidates) {
  if (is_greedy(params)) {
    candidates = {{.weight = 1, .token_id = first_of(logits, max_logit)}};
  } else {
    filter_tokens(logits, max_logit, token_filter(params), candidates);
  }
}

double sum_weights(std::span<const Candidate> candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.weight;
  return sum;
}

void keep_masked(std::span<float> logits, std::span<const uint32_t> mask) {
  for (int64_t id = 0; id < std::ssize(logits); ++id) {
    if (!is_allowed(mask, id)) logits[id] = kMinusInfinity;
  }
}

}  // namespace

struct SamplerState::Impl {
  std::shared_ptr<const SamplingParams> params;
  uint64_t seed;
  int vocab_size;
  int64_t num_tokens;  // known tokens; also the position of the next token
  int32_t last_token;
  LogitsRules rules;
  std::vector<int32_t> assumed = {};  // drafts that num_tokens does not include, but the rules
                                      // count

  // The logits after the request's rules, and the largest of these logits.
  struct Ruled {
    std::span<const float> logits;
    float max_logit = 0;
  };

  int64_t position() const { return num_tokens + std::ssize(assumed); }
  Status apply_rules(std::span<const float> logits, std::optional<std::span<const uint32_t>> mask,
                     Ruled& ruled) const;
  int32_t choose(const Ruled& ruled) const;
};

SamplerState::SamplerState(std::shared_ptr<const SamplingParams> params, uint64_t seed,
                           std::span<const int32_t> token_ids, int num_prompt_tokens,
                           std::vector<int32_t> end_token_ids,
                           std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size) {
  LogitsRules rules(params, token_ids, num_prompt_tokens, std::move(end_token_ids),
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

LargestLogit largest_logit(std::span<const float> logits, int32_t first_id) {
  const Largest found = find_largest(logits);
  LargestLogit largest = {.logit = found.logit,
                          .token_id = first_id + first_of(logits, found.logit)};
  if (found.has_nan) largest.nan_id = first_id + first_nan(logits);
  return largest;
}

Status check_logits(std::span<const float> logits, int64_t position) {
  return check_largest(find_largest(logits), logits, position);
}

// The result may point to a buffer of the thread, which is valid until its next call.
Status SamplerState::Impl::apply_rules(std::span<const float> logits,
                                       std::optional<std::span<const uint32_t>> mask,
                                       Ruled& ruled) const {
  QUIRE_CHECK(logits.size() == static_cast<size_t>(vocab_size),
              "[sample] the number of logits is not the size of the vocabulary");
  Largest largest = find_largest(logits);
  QUIRE_RETURN_IF_ERROR(check_largest(largest, logits, position()));
  if (rules.changes_logits() || mask) {
    thread_local std::vector<float> changed;
    changed.assign(logits.begin(), logits.end());
    if (mask) keep_masked(changed, *mask);
    rules.apply(changed);
    largest = find_largest(changed);
    const bool is_none_left = largest.logit == kMinusInfinity;
    if (is_none_left && !largest.has_nan) return no_token_allowed(position());
    QUIRE_RETURN_IF_ERROR(check_largest(largest, changed, position()));
    logits = changed;
  }
  ruled = {.logits = logits, .max_logit = largest.logit};
  return {};
}

int32_t SamplerState::Impl::choose(const Ruled& ruled) const {
  const auto& [logits, max_logit] = ruled;
  if (is_greedy(*params)) return first_of(logits, max_logit);
  const TokenNoise noise(seed, static_cast<uint64_t>(position()));
  const TokenFilter filter = token_filter(*params);
  if (filter.keeps_all()) {
    return sample_gumbel_max(logits, max_logit, params->temperature, noise);
  }
  thread_local std::vector<Candidate> candidates;
  filter_tokens(logits, max_logit, filter, candidates);
  return sample_gumbel_max(candidates, noise);
}

Status SamplerState::sample(std::span<const float> logits,
                            std::optional<std::span<const uint32_t>> mask, int32_t& token_id,
                            PositionLogprobs& logprobs) {
  QUIRE_RETURN_IF_ERROR(choose(logits, mask, token_id));
  logprobs = this->logprobs(logits, token_id);
  append(token_id);
  return {};
}

Status SamplerState::choose(std::span<const float> logits,
                            std::optional<std::span<const uint32_t>> mask,
                            int32_t& token_id) const {
  Impl::Ruled ruled;
  QUIRE_RETURN_IF_ERROR(impl_->apply_rules(logits, mask, ruled));
  token_id = impl_->choose(ruled);
  return {};
}

bool SamplerState::is_random() const {
  return !is_greedy(*impl_->params);
}

bool SamplerState::chooses_from_parts() const {
  const SamplingParams& params = *impl_->params;
  return !impl_->rules.changes_logits() && !params.logprobs &&
         (is_greedy(params) || token_filter(params).keeps_all());
}

ScoredToken SamplerState::best_of_part(std::span<const float> logits, int32_t first_id,
                                       const LargestLogit& largest, int num_drafts) const {
  const TokenNoise noise(impl_->seed, static_cast<uint64_t>(impl_->position() + num_drafts));
  return best_gumbel(logits, first_id, largest.logit, impl_->params->temperature, noise);
}

Status SamplerState::choose(const LargestLogit& largest, const ScoredToken& best,
                            int32_t& token_id) const {
  if (largest.nan_id != LargestLogit::kNone) return nan_logit(impl_->position(), largest.nan_id);
  QUIRE_RETURN_IF_ERROR(check_largest(largest.logit, impl_->position()));
  token_id = is_random() ? static_cast<int32_t>(best.token_id) : largest.token_id;
  return {};
}

Status SamplerState::distribution(std::span<const float> logits,
                                  std::optional<std::span<const uint32_t>> mask,
                                  TokenDistribution& target) const {
  Impl::Ruled ruled;
  QUIRE_RETURN_IF_ERROR(impl_->apply_rules(logits, mask, ruled));
  find_candidates(ruled.logits, ruled.max_logit, *impl_->params, target.candidates);
  target.total = sum_weights(target.candidates);
  return {};
}

// Log probabilities are computed from the model's logits, before the request's rules are applied.
PositionLogprobs SamplerState::logprobs(std::span<const float> logits, int32_t token_id) const {
  const std::optional<int>& num_top = impl_->params->logprobs;
  return num_top ? compute_logprobs(logits, token_id, *num_top) : PositionLogprobs();
}

void SamplerState::append(int32_t token_id) {
  QUIRE_CHECK(impl_->assumed.empty(), "[sample] assumed drafts were not settled");
  impl_->rules.append_output(token_id);
  impl_->last_token = token_id;
  ++impl_->num_tokens;
}

void SamplerState::assume(int32_t draft) {
  impl_->rules.append_output(draft);
  impl_->assumed.push_back(draft);
}

void SamplerState::settle(size_t num_accepted) {
  std::vector<int32_t>& assumed = impl_->assumed;
  QUIRE_CHECK(num_accepted <= assumed.size(), "[sample] more drafts are accepted than assumed");
  for (; assumed.size() > num_accepted; assumed.pop_back()) {
    impl_->rules.remove_output(assumed.back());
  }
  if (!assumed.empty()) impl_->last_token = assumed.back();
  impl_->num_tokens += std::ssize(assumed);
  assumed.clear();
}

DraftNoise SamplerState::draft_noise() const {
  return {impl_->seed, static_cast<uint64_t>(impl_->num_tokens)};
}

std::optional<int32_t> most_likely_token(std::span<const float> logits) {
  const Largest largest = find_largest(logits);
  if (!check_largest(largest, logits, 0).ok()) return std::nullopt;
  return first_of(logits, largest.logit);
}

float lead_of_most_likely(std::span<const float> logits) {
  float first = kMinusInfinity;
  float second = kMinusInfinity;
  for (const float logit : logits) {
    second = std::max(second, std::min(first, logit));
    first = std::max(first, logit);
  }
  return second == kMinusInfinity ? 1.0F : 1.0F / (1.0F + std::exp(second - first));
}

// Samples by the F32 probabilities that are written, so that the draft has exactly that
// distribution.
std::optional<int32_t> sample_draft(std::span<const float> logits, const SamplingParams& params,
                                    const TokenNoise& noise, std::span<float> probs) {
  const Largest largest = find_largest(logits);
  if (!check_largest(largest, logits, 0).ok()) return std::nullopt;
  thread_local std::vector<Candidate> candidates;
  find_candidates(logits, largest.logit, params, candidates);
  const double total = sum_weights(candidates);
  std::ranges::fill(probs, 0.F);
  for (auto& [weight, token_id] : candidates) {
    const auto prob = static_cast<float>(weight / total);
    probs[static_cast<size_t>(token_id)] = prob;
    weight = static_cast<double>(prob);
  }
  return sample_gumbel_max(candidates, noise);
}

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
         params.frequency_penalty != 0.0F;
}

LogitsRules::LogitsRules(std::shared_ptr<const SamplingParams> params,
                         std::span<const int32_t> token_ids, int num_prompt_tokens,
                         std::vector<int32_t> end_token_ids,
                         std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size)
    : params_(std::move(params)),
      end_token_ids_(std::move(end_token_ids)),
      bad_words_ids_(std::move(bad_words_ids)),
      has_penalties_(has_penalties(*params_)) {
  const auto is_outside = [&](int32_t id) { return id < 0 || id >= vocab_size; };
  std::erase_if(end_token_ids_, is_outside);
  std::erase_if(bad_words_ids_, [&](const std::vector<int32_t>& word) {
    return word.empty() || std::ranges::any_of(word, is_outside);
  });
  const auto num_prompt = static_cast<size_t>(num_prompt_tokens);
  if (has_penalties_) {
    for (const int32_t id : token_ids.first(num_prompt)) seen_[id].in_prompt = true;
  }
  for (const int32_t id : token_ids.subspan(num_prompt)) append_output(id);
}

bool LogitsRules::changes_logits() const {
  return has_penalties_ || forbids_stop() || !params_->allowed_token_ids.empty() ||
         !bad_words_ids_.empty() || !params_->logit_bias.empty();
}

void LogitsRules::append_output(int32_t token_id) {
  ++num_output_;
  if (!bad_words_ids_.empty()) output_ids_.push_back(token_id);
  if (has_penalties_) ++seen_[token_id].num_output;
}

void LogitsRules::remove_output(int32_t token_id) {
  --num_output_;
  if (!bad_words_ids_.empty()) output_ids_.pop_back();
  if (!has_penalties_) return;
  const auto seen = seen_.find(token_id);
  // The entry is erased because penalties apply to every token in the map.
  if (--seen->second.num_output == 0 && !seen->second.in_prompt) seen_.erase(seen);
}

void LogitsRules::apply(std::span<float> logits) const {
  keep_allowed(logits);
  forbid_bad_words(logits);
  if (forbids_stop()) {
    for (const int32_t id : end_token_ids_) logits[static_cast<size_t>(id)] = kMinusInfinity;
  }
  for (const auto& [id, bias] : params_->logit_bias) logits[static_cast<size_t>(id)] += bias;
  apply_penalties(logits);
}

void LogitsRules::keep_allowed(std::span<float> logits) const {
  const std::vector<int32_t>& allowed = params_->allowed_token_ids;
  if (allowed.empty()) return;
  thread_local std::vector<float> kept;
  kept.clear();
  for (const int32_t id : allowed) kept.push_back(logits[static_cast<size_t>(id)]);
  std::ranges::fill(logits, kMinusInfinity);
  for (size_t i = 0; i < allowed.size(); ++i) logits[static_cast<size_t>(allowed[i])] = kept[i];
}

// Forbids the last token of a bad word if the output ends with the word's other tokens. The prompt
// does not count.
void LogitsRules::forbid_bad_words(std::span<float> logits) const {
  for (const std::vector<int32_t>& word : bad_words_ids_) {
    const auto begun = std::span(word).first(word.size() - 1);
    if (begun.size() > output_ids_.size()) continue;
    const auto tail = std::span(output_ids_).last(begun.size());
    if (std::ranges::equal(begun, tail)) logits[static_cast<size_t>(word.back())] = kMinusInfinity;
  }
}

void LogitsRules::apply_penalties(std::span<float> logits) const {
  for (const auto& [id, seen] : seen_) {
    float& logit = logits[static_cast<size_t>(id)];
    logit = logit > 0 ? logit / params_->repetition_penalty : logit * params_->repetition_penalty;
    logit -= params_->frequency_penalty * static_cast<float>(seen.num_output);
    if (seen.num_output > 0) logit -= params_->presence_penalty;
  }
}

Status nan_logit(int64_t position, int64_t token_id) {
  return internal_error(
      fmt::format("[sample] logits at position {}; got NaN for token {}, expected numbers: the "
                  "weights or the model are broken",
                  position, token_id));
}

Status infinite_logit(int64_t position) {
  return internal_error(fmt::format(
      "[sample] logits at position {}; got infinity, expected finite numbers", position));
}

Status no_finite_logit(int64_t position) {
  return internal_error(
      fmt::format("[sample] logits at position {}; got -infinity for every token, expected finite "
                  "numbers: the weights or the model are broken",
                  position));
}

Status no_token_allowed(int64_t position) {
  return invalid_argument(fmt::format(
      "[sample] logits at position {}; got -infinity for every token, expected one that may be "
      "chosen: allowed_token_ids, bad_words, min_tokens and a grammar leave none",
      position));
}

namespace {

struct LogSoftmax {
  double max_logit;
  double log_sum;  // log of the sum of exp(logit - max_logit)

  float logprob(float logit) const {
    return static_cast<float>(static_cast<double>(logit) - max_logit - log_sum);
  }
};

// Sums in FP64 and in the order of ids, so that the result depends only on the logits.
LogSoftmax log_softmax(std::span<const float> logits) {
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
  const LogSoftmax softmax = log_softmax(logits);
  const float chosen_logit = logits[static_cast<size_t>(chosen)];
  // As in vLLM, a token with ties gets the last rank among them.
  const auto rank = std::ranges::count_if(logits, [&](float x) { return x >= chosen_logit; });
  PositionLogprobs all;
  all.reserve(top.size() + 1);
  all.push_back({chosen, softmax.logprob(chosen_logit), static_cast<int>(rank)});
  for (const int32_t id : top) {
    const float logprob = softmax.logprob(logits[static_cast<size_t>(id)]);
    all.push_back({id, logprob, static_cast<int>(all.size())});
  }
  return all;
}

}  // namespace quire
