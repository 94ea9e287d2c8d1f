#include "engine/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/exception_text.h"
#include "engine/stop.h"

namespace quire {
namespace {

Status constraint_threw(const std::string& what) {
  return internal_error(fmt::format("[engine] the answer's constraint threw; {}", what));
}

}  // namespace

Answer::Prompt Answer::read_prompt(const Tokenizer* tokenizer, const SamplingParams& params,
                                   std::vector<int32_t> token_ids) {
  Prompt prompt;
  prompt.token_ids = std::make_shared<const std::vector<int32_t>>(std::move(token_ids));
  if (tokenizer == nullptr || !params.detokenize) return prompt;
  prompt.detokenizer.emplace(*tokenizer, params.skip_special_tokens);
  prompt.detokenizer->prime(*prompt.token_ids);
  return prompt;
}

Answer::Answer(const Prompt& prompt, std::shared_ptr<const SamplingSpec> sampling,
               std::span<const int32_t> eos_ids, int index,
               std::unique_ptr<TokenConstraint> constraint)
    : sampling_(std::move(sampling)),
      detokenizer_(prompt.detokenizer),
      eos_ids_(eos_ids.begin(), eos_ids.end()),
      prompt_ids_(prompt.token_ids),
      index_(index),
      constraint_(std::move(constraint)) {
  for (const std::string& stop : sampling_->params->stop) {
    longest_stop_ = std::max(longest_stop_, stop.size());
  }
}

std::vector<uint32_t> Answer::allowed_tokens() {
  std::vector<uint32_t> mask;
  Status failure;
  const auto thrown = exception_text([&] {
    mask = constraint_->allowed_tokens();
    failure = constraint_->status();
  });
  if (thrown) failure = constraint_threw(*thrown);
  if (!failure.ok()) {
    forced_end_ = {.reason = FinishReason::kError, .error = std::move(failure)};
  } else if (allows_only_forbidden_ends(mask)) {
    forced_end_ = {.reason = FinishReason::kStop, .error = {}};
  }
  // The sampler must find a token to choose, though it is not used.
  if (forced_end_) mask.assign(std::max<size_t>(mask.size(), 1), ~0U);
  return mask;
}

bool Answer::allows_only_forbidden_ends(const std::vector<uint32_t>& mask) const {
  if (num_output_tokens_ >= sampling_->params->min_tokens) return false;
  constexpr int32_t kBitsPerWord = 32;
  std::vector<uint32_t> rest = mask;
  for (const int32_t id : sampling_->stop_token_ids) {
    const auto word = static_cast<size_t>(id / kBitsPerWord);
    if (id >= 0 && word < rest.size()) rest[word] &= ~(1U << (id % kBitsPerWord));
  }
  const auto is_empty = [](uint32_t word) { return word == 0; };
  return std::ranges::all_of(rest, is_empty) && !std::ranges::all_of(mask, is_empty);
}

// Log probabilities of the prompt's tokens come with the token that was sampled behind them.
void Answer::carry_prompt(SampledToken& sampled, int num_cached_tokens, Output& output) {
  if (num_output_tokens_ > 0) return;
  output.prompt_token_ids = std::exchange(prompt_ids_, nullptr);
  output.prompt_logprobs = std::move(sampled.prompt_logprobs);
  output.num_cached_tokens = num_cached_tokens;
}

Output Answer::end_as_forced(SampledToken&& sampled, int num_cached_tokens) {
  Output output = end(forced_end_->reason, forced_end_->error);
  carry_prompt(sampled, num_cached_tokens, output);
  return output;
}

Output Answer::accept(SampledToken&& sampled, int num_cached_tokens, bool at_max_length) {
  if (forced_end_) return end_as_forced(std::move(sampled), num_cached_tokens);
  const SamplingParams& params = *sampling_->params;
  Output output;
  output.index = index_;
  output.token_ids.push_back(sampled.token_id);
  if (params.logprobs) output.logprobs.push_back(std::move(sampled.logprobs));
  carry_prompt(sampled, num_cached_tokens, output);
  ++num_output_tokens_;
  const std::optional<StopDecision> stop =
      check_stop_token(params, eos_ids_, sampled.token_id, num_output_tokens_, at_max_length);
  if (stop) {
    output.finish_reason = stop->reason;
    output.stop_reason = stop->stop_reason;
  }
  // A token that ends the answer may be none that the constraint knows.
  if (!output.finish_reason) output.error = take(sampled.token_id);
  if (!output.error.ok()) output.finish_reason = FinishReason::kError;
  if (detokenizer_) append_text(sampled.token_id, output);
  return output;
}

Status Answer::take(int32_t token_id) {
  if (constraint_ == nullptr) return {};
  bool is_accepted = false;
  Status failure;
  const auto thrown = exception_text([&] {
    is_accepted = constraint_->accept(token_id);
    if (!is_accepted) failure = constraint_->status();
  });
  if (thrown) return constraint_threw(*thrown);
  if (is_accepted || !failure.ok()) return failure;
  return internal_error(fmt::format(
      "[engine] the answer's constraint refuses token {}, which it had allowed", token_id));
}

void Answer::append_text(int32_t token_id, Output& output) {
  const SamplingParams& params = *sampling_->params;
  const bool is_stop_token = output.finish_reason == FinishReason::kStop;
  const size_t old_size = text_.size();
  if (!is_stop_token || params.include_stop_str_in_output) text_ += detokenizer_->push(token_id);
  if (output.finish_reason) text_ += detokenizer_->finish();
  if (num_output_tokens_ <= params.min_tokens) {
    stop_search_from_ = text_.size() + detokenizer_->pending().size();
  } else if (!is_stop_token && !params.stop.empty()) {
    // A new match ends in the new text, so it begins at most longest - 1 bytes before it.
    const size_t reach = old_size > longest_stop_ - 1 ? old_size - (longest_stop_ - 1) : 0;
    stop_search_from_ = std::max(stop_search_from_, reach);
    stop_at_string(output);
  }
  show_text(output);
}

// Text that the detokenizer still holds back counts: a stop must not be seen a token late.
void Answer::stop_at_string(Output& output) {
  const SamplingParams& params = *sampling_->params;
  const std::string pending = detokenizer_->pending();
  text_ += pending;
  const auto match = find_stop_string(text_, stop_search_from_, params.stop);
  if (!match) return text_.resize(text_.size() - pending.size());
  text_.resize(params.include_stop_str_in_output ? match->end : match->begin);
  output.finish_reason = FinishReason::kStop;
  output.stop_reason = params.stop[match->stop_idx];
}

void Answer::show_text(Output& output) {
  const size_t held_back =
      output.finish_reason ? 0 : held_back_bytes(text_, sampling_->params->stop);
  const size_t showable = std::max(text_.size() - held_back, shown_bytes_);
  output.text = text_.substr(shown_bytes_, showable - shown_bytes_);
  shown_bytes_ = showable;
}

Output Answer::end(FinishReason reason, Status error) {
  Output output;
  output.index = index_;
  output.finish_reason = reason;
  if (detokenizer_) {
    text_ += detokenizer_->finish();
    show_text(output);
  }
  output.error = std::move(error);
  return output;
}

}  // namespace quire
