#include "sample/logits_rules.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace quire {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

}  // namespace

LogitsRules::LogitsRules(std::shared_ptr<const SamplingParams> params,
                         std::span<const int32_t> token_ids, int num_prompt_tokens,
                         std::vector<int32_t> stop_token_ids,
                         std::vector<std::vector<int32_t>> bad_words_ids, int vocab_size)
    : params_(std::move(params)),
      stop_token_ids_(std::move(stop_token_ids)),
      bad_words_ids_(std::move(bad_words_ids)),
      has_penalties_(params_->repetition_penalty != 1.0F || params_->presence_penalty != 0.0F ||
                     params_->frequency_penalty != 0.0F) {
  const auto is_outside = [&](int32_t id) { return id < 0 || id >= vocab_size; };
  std::erase_if(stop_token_ids_, is_outside);
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

void LogitsRules::apply(std::span<float> logits) const {
  keep_allowed(logits);
  forbid_bad_words(logits);
  if (forbids_stop()) {
    for (const int32_t id : stop_token_ids_) logits[static_cast<size_t>(id)] = kForbidden;
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
  std::ranges::fill(logits, kForbidden);
  for (size_t i = 0; i < allowed.size(); ++i) logits[static_cast<size_t>(allowed[i])] = kept[i];
}

// A bad word is forbidden when the output would end with it; the prompt does not count.
void LogitsRules::forbid_bad_words(std::span<float> logits) const {
  for (const std::vector<int32_t>& word : bad_words_ids_) {
    const auto begun = std::span(word).first(word.size() - 1);
    if (begun.size() > output_ids_.size()) continue;
    const auto tail = std::span(output_ids_).last(begun.size());
    if (std::ranges::equal(begun, tail)) logits[static_cast<size_t>(word.back())] = kForbidden;
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

}  // namespace quire
