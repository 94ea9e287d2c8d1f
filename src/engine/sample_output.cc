#include "engine/sample_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/guarded.h"
#include "sample/rejection.h"
#include "tokenizer/unicode.h"

namespace quire {
namespace {

Status constraint_threw(const std::string& what) {
  return internal_error(fmt::format("[engine] the sequence's constraint threw; {}", what));
}

// A bitmap of ids: bit i % 32 of word i / 32 is set if the list has id i.
std::vector<uint32_t> bitmap_of(std::span<const int32_t> ids) {
  constexpr int32_t kBitsPerWord = 32;
  std::vector<uint32_t> bitmap;
  for (const int32_t id : ids) {
    if (id < 0) continue;
    const auto word = static_cast<size_t>(id / kBitsPerWord);
    if (word >= bitmap.size()) bitmap.resize(word + 1);
    bitmap[word] |= 1U << (id % kBitsPerWord);
  }
  return bitmap;
}

// A mask that allows all tokens; it has at least one word.
std::vector<uint32_t> all_tokens(size_t num_words) {
  return std::vector<uint32_t>(std::max<size_t>(num_words, 1), ~0U);
}

}  // namespace

SampleOutput::Start SampleOutput::start_of(const Tokenizer* tokenizer, const SamplingSpec& sampling,
                                           std::vector<int32_t> prompt_ids) {
  const SamplingParams& params = *sampling.params;
  Start start = {
      .prompt_ids = std::make_shared<const std::vector<int32_t>>(std::move(prompt_ids)),
      .detokenizer = std::nullopt,
      .stop_search = StopSearch(params.stop),
      .forbidden_ends = nullptr,
      .embedding = std::nullopt,
  };
  if (params.min_tokens > 0) {
    start.forbidden_ends =
        std::make_shared<const std::vector<uint32_t>>(bitmap_of(sampling.end_token_ids));
  }
  if (tokenizer == nullptr || !params.detokenize) return start;
  start.detokenizer.emplace(*tokenizer, params.skip_special_tokens);
  start.detokenizer->prime(*start.prompt_ids);
  return start;
}

SampleOutput::SampleOutput(const Start& start, std::shared_ptr<const SamplingSpec> sampling,
                           std::span<const int32_t> eos_ids, int index,
                           std::unique_ptr<TokenConstraint> constraint)
    : sampling_(std::move(sampling)),
      detokenizer_(start.detokenizer),
      eos_ids_(eos_ids.begin(), eos_ids.end()),
      prompt_ids_(start.prompt_ids),
      index_(index),
      constraint_(std::move(constraint)),
      forbidden_ends_(start.forbidden_ends),
      embedding_(start.embedding),
      stop_search_(start.stop_search) {}

// Accepts the drafts on trial. Whether a draft is kept may depend only on its mask, because the
// mask also restricts the draft's distribution (keep_allowed()). Therefore a draft that ends the
// sample is kept, and the token sampled after it is dropped.
int SampleOutput::add_masks(std::span<const int32_t> drafts,
                            std::vector<std::vector<uint32_t>>& masks) {
  forced_end_.reset();
  masks.push_back(allowed_after(0));
  int num_kept = 0;
  int num_accepted = 0;
  for (const int32_t draft : drafts) {
    if (!can_have_drafts() || !is_allowed(masks.back(), draft)) break;
    ++num_kept;
    const bool is_end =
        check_stop_token(*sampling_->params, eos_ids_, draft, num_output_tokens_ + num_kept, false)
            .has_value();
    if (is_end || !accept_by_constraint(draft).ok()) {
      masks.push_back(all_tokens(masks.back().size()));
      break;
    }
    ++num_accepted;
    masks.push_back(allowed_after(static_cast<size_t>(num_kept)));
  }
  roll_back(num_accepted);
  return num_kept;
}

bool SampleOutput::can_have_drafts() const {
  if (forced_end_) return false;
  bool can = false;
  const auto thrown = exception_text([&] { can = constraint_->can_roll_back(); });
  return can && !thrown;
}

void SampleOutput::roll_back(int num_drafts) {
  if (num_drafts == 0) return;
  bool is_done = false;
  Status failure;
  const auto thrown = exception_text([&] {
    is_done = constraint_->rollback(num_drafts);
    failure = constraint_->status();
  });
  if (is_done && !thrown) return;
  if (thrown) failure = constraint_threw(*thrown);
  if (failure.ok()) {
    failure = internal_error(
        fmt::format("[engine] the sequence's constraint cannot roll back {} drafts", num_drafts));
  }
  forced_end_ = {.reason = FinishReason::kError, .error = std::move(failure)};
}

std::vector<uint32_t> SampleOutput::allowed_after(size_t num_drafts) {
  std::vector<uint32_t> mask;
  Status failure;
  const auto thrown = exception_text([&] {
    mask = constraint_->allowed_tokens();
    failure = constraint_->status();
  });
  if (thrown) failure = constraint_threw(*thrown);
  if (!failure.ok()) {
    forced_end_ = {
        .reason = FinishReason::kError, .error = std::move(failure), .num_tokens = num_drafts};
  } else if (!remove_forbidden_ends(num_output_tokens_ + static_cast<int>(num_drafts), mask)) {
    forced_end_ = {.reason = FinishReason::kStop, .error = {}, .num_tokens = num_drafts};
  }
  // The sampler needs at least one allowed token, although its result is not used.
  return forced_end_ ? all_tokens(mask.size()) : mask;
}

bool SampleOutput::remove_forbidden_ends(int num_output, std::vector<uint32_t>& mask) const {
  if (num_output >= sampling_->params->min_tokens) return true;
  uint32_t before = 0;
  uint32_t after = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    before |= mask[i];
    if (i < forbidden_ends_->size()) mask[i] &= ~(*forbidden_ends_)[i];
    after |= mask[i];
  }
  return before == 0 || after != 0;
}

// Log probabilities of the prompt's tokens arrive with the first token sampled after the prompt.
void SampleOutput::attach_prompt(SpanResult& span, int num_cached_tokens, Output& output) {
  if (num_output_tokens_ > 0) return;
  output.prompt_token_ids = std::exchange(prompt_ids_, nullptr);
  output.prompt_logprobs = std::move(span.prompt_logprobs);
  output.num_cached_tokens = num_cached_tokens;
}

Output SampleOutput::embed(SpanResult&& span, int num_cached_tokens) {
  Result<std::vector<float>> embedding = make_embedding(std::move(span.hidden_state), *embedding_);
  if (!embedding.ok()) return end(FinishReason::kError, embedding.status());
  Output output = end(FinishReason::kStop, {});
  attach_prompt(span, num_cached_tokens, output);
  output.embedding = std::move(*embedding);
  return output;
}

Output SampleOutput::accept(SpanResult&& span, int num_cached_tokens, bool at_max_length) {
  if (embedding_) return embed(std::move(span), num_cached_tokens);
  const std::optional<ForcedEnd> forced = std::exchange(forced_end_, std::nullopt);
  // A span that has a token after the forced end has accepted all drafts before it.
  const bool is_forced =
      forced && (forced->num_tokens == 0 || forced->num_tokens < span.tokens.size());
  const size_t num_tokens = is_forced ? forced->num_tokens : span.tokens.size();
  Output output;
  output.index = index_;
  attach_prompt(span, num_cached_tokens, output);
  for (size_t i = 0; i < num_tokens && !output.finish_reason; ++i) {
    const bool is_last = i + 1 == span.tokens.size();
    accept_token(std::move(span.tokens[i]), is_last && at_max_length, output);
  }
  if (!is_forced || output.finish_reason) return output;
  output.finish_reason = forced->reason;
  output.error = forced->error;
  end_text(output);
  return output;
}

void SampleOutput::accept_token(SampledToken&& token, bool at_max_length, Output& output) {
  const SamplingParams& params = *sampling_->params;
  output.token_ids.push_back(token.token_id);
  if (params.logprobs) output.logprobs.push_back(std::move(token.logprobs));
  ++num_output_tokens_;
  const std::optional<StopDecision> stop =
      check_stop_token(params, eos_ids_, token.token_id, num_output_tokens_, at_max_length);
  if (stop) {
    output.finish_reason = stop->reason;
    output.stop_reason = stop->stop_reason;
  }
  // A stop token is not passed to the constraint, because it need not be part of the grammar.
  if (!output.finish_reason) output.error = accept_by_constraint(token.token_id);
  if (!output.error.ok()) output.finish_reason = FinishReason::kError;
  if (detokenizer_) append_text(token.token_id, output);
}

Status SampleOutput::accept_by_constraint(int32_t token_id) {
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
      "[engine] the sequence's constraint refuses token {}, which it had allowed", token_id));
}

void SampleOutput::append_text(int32_t token_id, Output& output) {
  const SamplingParams& params = *sampling_->params;
  const bool is_stop_token = output.finish_reason == FinishReason::kStop;
  if (!is_stop_token || params.include_stop_str_in_output) push_token(token_id);
  if (output.finish_reason) text_ += detokenizer_->finish();
  if (num_output_tokens_ <= params.min_tokens) {
    stop_search_.skip_to(text_.size() + detokenizer_->pending().size());
  } else if (!is_stop_token && !params.stop.empty()) {
    stop_at_string(output);
  }
  emit_text(output);
}

// The place of an omitted added token is after the text that the detokenizer still holds back.
void SampleOutput::push_token(int32_t token_id) {
  const Tokenizer& tokenizer = detokenizer_->tokenizer();
  const bool is_added = tokenizer.is_added(token_id);
  size_t begin = is_added ? text_.size() + detokenizer_->pending().size() : 0;
  text_ += detokenizer_->push(token_id);
  if (!is_added) return;
  const size_t end = std::max(text_.size() + detokenizer_->pending().size(), begin);
  // Bytes of an incomplete character before the token became U+FFFD, which is not the token's.
  const std::string spelling = tokenizer.token_bytes(token_id);
  if (end == text_.size() && text_.ends_with(spelling)) {
    begin = std::max(begin, end - spelling.size());
  }
  added_tokens_.push_back({.token_id = token_id, .begin = begin, .end = end});
}

// Also searches the text that the detokenizer still holds back; otherwise a stop would be found one
// token late. A copy of the search reads that text, because it may still change.
void SampleOutput::stop_at_string(Output& output) {
  const SamplingParams& params = *sampling_->params;
  std::optional<StopStringMatch> match = stop_search_.read(text_);
  if (!match) {
    const size_t num_certain = text_.size();
    text_ += detokenizer_->pending();
    match = StopSearch(stop_search_).read(text_);
    if (!match) return text_.resize(num_certain);
  }
  text_.resize(params.include_stop_str_in_output ? match->end : match->begin);
  std::erase_if(added_tokens_,
                [&](const AddedTokenPlace& place) { return place.end > text_.size(); });
  output.finish_reason = FinishReason::kStop;
  output.stop_reason = params.stop[match->stop_idx];
}

void SampleOutput::emit_text(Output& output) {
  const size_t held_back = output.finish_reason ? 0 : stop_search_.num_held_back();
  size_t ready_bytes = std::max(text_.size() - held_back, emitted_bytes_);
  for (const AddedTokenPlace& place : added_tokens_) {  // no output ends inside the token's text
    if (place.begin < ready_bytes && ready_bytes < place.end && !output.finish_reason) {
      ready_bytes = place.begin;
    }
  }
  emit_added_tokens(ready_bytes, output);
  output.text.append(text_, emitted_bytes_, ready_bytes - emitted_bytes_);
  emitted_bytes_ = ready_bytes;
}

// Emits the added tokens up to offset `end` of the text. Bytes that turned out to be invalid UTF-8
// were replaced after the places were computed, so a place inside a character moves to its end.
void SampleOutput::emit_added_tokens(size_t end, Output& output) {
  const auto to_output = [&](size_t place) {
    place = std::min(place, end);
    while (place < end && unicode::is_continuation(text_[place])) ++place;
    return place - emitted_bytes_ + output.text.size();
  };
  size_t count = 0;
  for (const AddedTokenPlace& place : added_tokens_) {
    if (place.end > end && !output.finish_reason) break;
    output.added_tokens.push_back(
        {.token_id = place.token_id, .begin = to_output(place.begin), .end = to_output(place.end)});
    ++count;
  }
  added_tokens_.erase(added_tokens_.begin(),
                      added_tokens_.begin() + static_cast<std::ptrdiff_t>(count));
}

Output SampleOutput::end(FinishReason reason, Status error) {
  Output output;
  output.index = index_;
  output.finish_reason = reason;
  end_text(output);
  output.error = std::move(error);
  return output;
}

void SampleOutput::end_text(Output& output) {
  if (!detokenizer_) return;
  text_ += detokenizer_->finish();
  emit_text(output);
}

std::optional<StopDecision> check_stop_token(const SamplingParams& params,
                                             std::span<const int32_t> eos_ids, int32_t token_id,
                                             int num_output_tokens, bool at_max_length) {
  if (num_output_tokens >= params.min_tokens) {
    const bool is_eos = std::ranges::find(eos_ids, token_id) != eos_ids.end();
    if (is_eos && !params.ignore_eos) return StopDecision{FinishReason::kStop, {}};
    if (std::ranges::binary_search(params.stop_token_ids, token_id)) {
      return StopDecision{FinishReason::kStop, std::to_string(token_id)};
    }
  }
  if (at_max_length) return StopDecision{FinishReason::kLength, {}};
  return std::nullopt;
}

StopSearch::StopSearch(std::span<const std::string> stops) : num_matched_(stops.size()) {
  std::vector<Stop> all;
  for (const std::string& text : stops) {
    all.push_back({.text = text, .borders = {0}});
    Stop& stop = all.back();
    for (size_t i = 1; i < text.size(); ++i) {
      stop.borders.push_back(extend(stop, stop.borders.back(), text[i]));
    }
  }
  stops_ = std::make_shared<const std::vector<Stop>>(std::move(all));
}

size_t StopSearch::extend(const Stop& stop, size_t num_matched, char next) {
  while (num_matched > 0 && stop.text[num_matched] != next) {
    num_matched = stop.borders[num_matched - 1];
  }
  return stop.text[num_matched] == next ? num_matched + 1 : 0;
}

std::optional<StopStringMatch> StopSearch::read(std::string_view text) {
  std::optional<StopStringMatch> longest;
  while (position_ < text.size() && !longest) {
    const char next = text[position_++];
    for (size_t i = 0; i < stops_->size(); ++i) {
      const Stop& stop = (*stops_)[i];
      num_matched_[i] = extend(stop, num_matched_[i], next);
      if (num_matched_[i] < stop.text.size()) continue;
      const size_t begin = position_ - stop.text.size();
      if (!longest || begin < longest->begin) longest = {begin, position_, i};
    }
  }
  return longest;
}

size_t StopSearch::num_held_back() const {
  return num_matched_.empty() ? 0 : std::ranges::max(num_matched_);
}

}  // namespace quire
