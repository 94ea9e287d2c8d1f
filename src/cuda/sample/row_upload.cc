#include "cuda/sample/row_upload.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace quire::cuda {
namespace {

bool has_penalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
         params.frequency_penalty != 0.0F;
}

// Whether an output can contain the word. LogitsRules ignores the same invalid words; words longer
// than any output are ignored too.
bool can_occur(const std::vector<int32_t>& word, const RowLimits& limits) {
  return !word.empty() && word.size() <= static_cast<size_t>(limits.max_tokens_per_seq) &&
         std::ranges::all_of(word, [&](int32_t id) { return id >= 0 && id < limits.vocab_size; });
}

Status check_count(const char* field, size_t got, int most) {
  if (got <= static_cast<size_t>(most)) return {};
  return invalid_argument(
      fmt::format("[sampling] {}; got {}, expected at most {} on this device", field, got, most));
}

RowState make_state(const SlotAdded& added, const RowLimits& limits) {
  const SamplingParams& params = *added.sampling->params;
  const bool has_top_k = params.top_k >= 1 && params.top_k < limits.vocab_size;
  const auto num_tokens = static_cast<int>(added.token_ids.size());
  return {.seed = added.sampling->seed,
          .position = num_tokens,
          .temperature = params.temperature,
          .top_p = std::min(params.top_p, 1.0F),
          .min_p = std::max(params.min_p, 0.0F),
          .top_k = has_top_k ? params.top_k : 0,
          .repetition_penalty = params.repetition_penalty,
          .presence_penalty = params.presence_penalty,
          .frequency_penalty = params.frequency_penalty,
          .num_logprobs = std::min(params.logprobs.value_or(-1), kMaxTopLogprobs),
          .num_output = num_tokens - added.num_prompt_tokens,
          .min_tokens = params.min_tokens,
          .num_biases = 0,
          .num_bad_words = 0,
          .flags = 0,
          .table = -1};
}

}  // namespace

int RowLimits::tail_size() const {
  return std::clamp(max_tokens_per_seq, 1, kMaxOutputTail);
}

size_t RowLimits::max_row_bytes() const {
  const size_t words = static_cast<size_t>(max_tokens_per_seq) + static_cast<size_t>(tail_size()) +
                       3 * static_cast<size_t>(bitmap_words()) + 2 * size_t{kMaxBiases} +
                       size_t{kMaxBadWords} + size_t{kMaxBadWordIds};
  return sizeof(AddedRow) + words * sizeof(int32_t);
}

Status check_row(const SamplingSpec& spec, const RowLimits& limits) {
  QUIRE_RETURN_IF_ERROR(check_count("logit_bias", spec.params->logit_bias.size(), kMaxBiases));
  QUIRE_RETURN_IF_ERROR(
      check_count("logprobs", static_cast<size_t>(std::max(spec.params->logprobs.value_or(0), 0)),
                  kMaxTopLogprobs));
  size_t num_words = 0;
  size_t num_ids = 0;
  for (const std::vector<int32_t>& word : spec.bad_words_ids) {
    if (!can_occur(word, limits)) continue;
    QUIRE_RETURN_IF_ERROR(check_count("tokens of one of bad_words", word.size(), kMaxOutputTail));
    ++num_words;
    num_ids += word.size();
  }
  QUIRE_RETURN_IF_ERROR(check_count("bad_words", num_words, kMaxBadWords));
  return check_count("tokens of bad_words", num_ids, kMaxBadWordIds);
}

size_t RowUpload::num_bytes() const {
  return headers_.size() * sizeof(AddedRow) + words_.size() * sizeof(int32_t);
}

void RowUpload::clear() {
  headers_.clear();
  words_.clear();
}

void RowUpload::write(std::byte* block) const {
  const size_t header_bytes = headers_.size() * sizeof(AddedRow);
  std::memcpy(block, headers_.data(), header_bytes);
  if (!words_.empty()) {
    std::memcpy(block + header_bytes, words_.data(), words_.size() * sizeof(int32_t));
  }
}

RowState& RowUpload::append(const SlotAdded& added) {
  AddedRow row = {};
  row.state = make_state(added, limits_);
  row.row = added.slot;
  row.last_token = added.token_ids.get().empty() ? 0 : added.token_ids.get().back();
  append_lists(added, row);
  append_biases(*added.sampling->params, row);
  append_bad_words(added, row);
  return headers_.emplace_back(row).state;
}

void RowUpload::append_lists(const SlotAdded& added, AddedRow& row) {
  const SamplingParams& params = *added.sampling->params;
  if (!params.allowed_token_ids.empty()) {
    row.state.flags |= kHasAllowed;
    row.allowed = append_bitmap(params.allowed_token_ids);
  }
  if (row.state.num_output < row.state.min_tokens && !added.sampling->stop_token_ids.empty()) {
    row.state.flags |= kHasStops;
    row.stops = append_bitmap(added.sampling->stop_token_ids);
  }
  if (has_penalties(params)) {
    row.state.flags |= kHasPenalties;
    const auto num_prompt = static_cast<size_t>(added.num_prompt_tokens);
    const std::span<const int32_t> ids = added.token_ids.get();
    row.prompt_ids = append_words(ids.first(num_prompt));
    row.output_ids = append_words(ids.subspan(num_prompt));
  }
}

// Sorts by id; equal ids keep the request's order, in which their biases are added.
void RowUpload::append_biases(const SamplingParams& params, AddedRow& row) {
  if (params.logit_bias.empty()) return;
  std::vector<std::pair<int32_t, float>> biases = params.logit_bias;
  std::ranges::stable_sort(biases, {}, &std::pair<int32_t, float>::first);
  row.state.flags |= kHasBias;
  row.state.num_biases = static_cast<int32_t>(biases.size());
  std::vector<int32_t> ids, values;
  for (const auto& [id, value] : biases) {
    ids.push_back(id);
    values.push_back(std::bit_cast<int32_t>(value));
  }
  row.biased = append_bitmap(ids);
  row.bias_ids = append_words(ids);
  row.bias_values = append_words(values);
}

void RowUpload::append_bad_words(const SlotAdded& added, AddedRow& row) {
  std::vector<int32_t> ends, ids;
  for (const std::vector<int32_t>& word : added.sampling->bad_words_ids) {
    if (!can_occur(word, limits_)) continue;
    ids.insert(ids.end(), word.begin(), word.end());
    ends.push_back(static_cast<int32_t>(ids.size()));
  }
  if (ends.empty()) return;
  row.state.flags |= kHasBadWords;
  row.state.num_bad_words = static_cast<int32_t>(ends.size());
  row.bad_word_ends = append_words(ends);
  row.bad_word_ids = append_words(ids);
  const std::span<const int32_t> output =
      std::span(added.token_ids.get()).subspan(static_cast<size_t>(added.num_prompt_tokens));
  const auto tail_size = static_cast<size_t>(limits_.tail_size());
  scratch_.assign(std::min(output.size(), tail_size), 0);
  for (size_t n = output.size() - scratch_.size(); n < output.size(); ++n) {
    scratch_[n % tail_size] = output[n];
  }
  row.output_tail = append_words(scratch_);
}

WordSpan RowUpload::append_words(std::span<const int32_t> words) {
  const auto first = static_cast<int32_t>(words_.size());
  words_.insert(words_.end(), words.begin(), words.end());
  return {first, static_cast<int32_t>(words.size())};
}

WordSpan RowUpload::append_bitmap(std::span<const int32_t> ids) {
  const size_t first = words_.size();
  words_.resize(first + static_cast<size_t>(limits_.bitmap_words()), 0);
  for (const int32_t id : ids) {
    if (id < 0 || id >= limits_.vocab_size) continue;
    int32_t& word = words_[first + static_cast<size_t>(id / 32)];
    word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << id % 32);
  }
  return {static_cast<int32_t>(first), limits_.bitmap_words()};
}

}  // namespace quire::cuda
