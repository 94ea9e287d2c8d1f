#include "cuda/sample/sampled_slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "sample/sampler.h"

namespace quire::cuda {
namespace {

// Whether an output can contain the word. Invalid words are ignored, as in LogitsRules, and so are
// words longer than any output.
bool can_occur(const std::vector<int32_t>& word, const DeviceSamplerLimits& limits) {
  return !word.empty() && word.size() <= static_cast<size_t>(limits.max_tokens_per_seq) &&
         std::ranges::all_of(word, [&](int32_t id) { return id >= 0 && id < limits.vocab_size; });
}

Status check_count(const char* field, size_t got, int most) {
  if (got <= static_cast<size_t>(most)) return {};
  return invalid_argument(fmt::format(
      "[sampling] over this device's limit: {}; got {}, expected at most {}", field, got, most));
}

SlotState make_state(const SlotAdded& added, const DeviceSamplerLimits& limits) {
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

// Flags that apply to every token. kHasStops applies only until min_tokens is reached.
constexpr uint32_t kLastingRules = kHasAllowed | kHasBadWords | kHasBias | kHasPenalties;

SamplePass lasting_pass(const SlotState& state) {
  if ((state.flags & kLastingRules) != 0) return SamplePass::kRules;
  if (state.temperature < kGreedyBelow) return SamplePass::kOnePass;
  const bool is_filtered = state.top_k >= 1 || state.top_p < 1.0F || state.min_p > 0.0F;
  return is_filtered ? SamplePass::kFilter : SamplePass::kOnePass;
}

}  // namespace

int DeviceSamplerLimits::tail_size() const {
  return std::clamp(max_tokens_per_seq, 1, kMaxOutputTail);
}

SlotTables DeviceSamplerLimits::sizes() const {
  SlotTables tables = {};
  tables.vocab_size = vocab_size;
  tables.vocab_stride = round_up(vocab_size, 4);
  tables.bitmap_words = bitmap_words();
  tables.tail_size = tail_size();
  return tables;
}

size_t DeviceSamplerLimits::max_slot_bytes() const {
  auto num_words = static_cast<size_t>(max_tokens_per_seq);  // prompt and output ids
  const SlotTables tables = sizes();
  SlotTables::for_each_list(tables, [&](const auto* /*array*/, int32_t words, auto /*list*/) {
    num_words += static_cast<size_t>(words);
  });
  return sizeof(UploadedSlot) + num_words * sizeof(int32_t);
}

Status check_sampling_spec(const SamplingSpec& spec, const DeviceSamplerLimits& limits) {
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

size_t SlotUpload::num_bytes() const {
  return headers_.size() * sizeof(UploadedSlot) + words_.size() * sizeof(int32_t);
}

void SlotUpload::clear() {
  headers_.clear();
  words_.clear();
}

void SlotUpload::write(std::byte* block) const {
  const size_t header_bytes = headers_.size() * sizeof(UploadedSlot);
  std::memcpy(block, headers_.data(), header_bytes);
  if (!words_.empty()) {
    std::memcpy(block + header_bytes, words_.data(), words_.size() * sizeof(int32_t));
  }
}

SlotState& SlotUpload::append(const SlotAdded& added) {
  UploadedSlot slot = {};
  slot.state = make_state(added, limits_);
  slot.slot = added.slot;
  slot.last_token = added.token_ids.get().empty() ? 0 : added.token_ids.get().back();
  append_lists(added, slot);
  append_biases(*added.sampling->params, slot);
  append_bad_words(added, slot);
  return headers_.emplace_back(slot).state;
}

void SlotUpload::append_lists(const SlotAdded& added, UploadedSlot& slot) {
  const SamplingParams& params = *added.sampling->params;
  if (!params.allowed_token_ids.empty()) {
    slot.state.flags |= kHasAllowed;
    slot.allowed = append_bitmap(params.allowed_token_ids);
  }
  if (slot.state.num_output < slot.state.min_tokens && !added.sampling->end_token_ids.empty()) {
    slot.state.flags |= kHasStops;
    slot.stops = append_bitmap(added.sampling->end_token_ids);
  }
  if (has_penalties(params)) {
    slot.state.flags |= kHasPenalties;
    const auto num_prompt = static_cast<size_t>(added.num_prompt_tokens);
    const std::span<const int32_t> ids = added.token_ids.get();
    slot.prompt_ids = append_words(ids.first(num_prompt));
    slot.output_ids = append_words(ids.subspan(num_prompt));
  }
}

// Sorts by id; equal ids keep the request's order, in which their biases are added.
void SlotUpload::append_biases(const SamplingParams& params, UploadedSlot& slot) {
  if (params.logit_bias.empty()) return;
  std::vector<std::pair<int32_t, float>> biases = params.logit_bias;
  std::ranges::stable_sort(biases, {}, &std::pair<int32_t, float>::first);
  slot.state.flags |= kHasBias;
  slot.state.num_biases = static_cast<int32_t>(biases.size());
  std::vector<int32_t> ids, values;
  for (const auto& [id, value] : biases) {
    ids.push_back(id);
    values.push_back(std::bit_cast<int32_t>(value));
  }
  slot.biased = append_bitmap(ids);
  slot.bias_ids = append_words(ids);
  slot.bias_values = append_words(values);
}

void SlotUpload::append_bad_words(const SlotAdded& added, UploadedSlot& slot) {
  std::vector<int32_t> ends, ids;
  for (const std::vector<int32_t>& word : added.sampling->bad_words_ids) {
    if (!can_occur(word, limits_)) continue;
    ids.insert(ids.end(), word.begin(), word.end());
    ends.push_back(static_cast<int32_t>(ids.size()));
  }
  if (ends.empty()) return;
  slot.state.flags |= kHasBadWords;
  slot.state.num_bad_words = static_cast<int32_t>(ends.size());
  slot.bad_word_ends = append_words(ends);
  slot.bad_word_ids = append_words(ids);
  const std::span<const int32_t> output =
      std::span(added.token_ids.get()).subspan(static_cast<size_t>(added.num_prompt_tokens));
  const auto tail_size = static_cast<size_t>(limits_.tail_size());
  scratch_.assign(std::min(output.size(), tail_size), 0);
  for (size_t n = output.size() - scratch_.size(); n < output.size(); ++n) {
    scratch_[n % tail_size] = output[n];
  }
  slot.output_tail = append_words(scratch_);
}

WordSpan SlotUpload::append_words(std::span<const int32_t> words) {
  const auto first = static_cast<int32_t>(words_.size());
  words_.insert(words_.end(), words.begin(), words.end());
  return {first, static_cast<int32_t>(words.size())};
}

WordSpan SlotUpload::append_bitmap(std::span<const int32_t> ids) {
  const size_t first = words_.size();
  words_.resize(first + static_cast<size_t>(limits_.bitmap_words()), 0);
  for (const int32_t id : ids) {
    if (id < 0 || id >= limits_.vocab_size) continue;
    int32_t& word = words_[first + static_cast<size_t>(id / 32)];
    word = static_cast<int32_t>(static_cast<uint32_t>(word) | uint32_t{1} << id % 32);
  }
  return {static_cast<int32_t>(first), limits_.bitmap_words()};
}

bool SamplePlan::is_mixed() const {
  return has_masks || std::ranges::find(counts, num_rows()) == counts.end();
}

SampledSlots::SampledSlots(int num_slots, int num_tables, SamplePass first_pass)
    : first_pass_(first_pass), slots_(static_cast<size_t>(num_slots)) {
  for (int table = num_tables - 1; table >= 0; --table) free_tables_.push_back(table);
}

void SampledSlots::remove(int slot) {
  Slot& old = slots_[static_cast<size_t>(slot)];
  if (old.table >= 0) free_tables_.push_back(old.table);
  old = {};
}

int SampledSlots::add(int slot, const SlotState& state) {
  remove(slot);
  Slot& added = slots_[static_cast<size_t>(slot)];
  added.pass = std::max(first_pass_, lasting_pass(state));
  added.is_random = state.temperature >= kGreedyBelow;
  added.wants_logprobs = state.num_logprobs >= 0;
  if ((state.flags & kHasStops) != 0) added.min_tokens_left = state.min_tokens - state.num_output;
  if (state.flags == 0) return -1;
  QUIRE_CHECK(!free_tables_.empty(),
              "[sample] rule tables are exhausted; the scheduler must admit at most max_rule_seqs "
              "sequences with rules");
  added.table = free_tables_.back();
  free_tables_.pop_back();
  return added.table;
}

SamplePlan SampledSlots::plan(std::span<const LogitsRowUse> rows) {
  SamplePlan plan;
  plan.rows.resize(rows.size());
  // Padding rows use the first sequence's pass, so that they need no launch of their own.
  SamplePass padding = first_pass_;
  for (size_t i = rows.size(); i-- > 0;) {
    if (rows[i].slot < 0) continue;
    Slot& slot = slots_[static_cast<size_t>(rows[i].slot)];
    const bool has_mask = rows[i].mask_idx >= 0;
    const bool has_rules = has_mask || slot.min_tokens_left > 0;
    const SamplePass pass = has_rules ? SamplePass::kRules : slot.pass;
    // All rows of a span use one pass. The loop runs backwards, so it counts the step at the span's
    // first row.
    if (slot.min_tokens_left > 0 && rows[i].offset == 0) --slot.min_tokens_left;
    plan.rows[i] = {.pass = pass, .mask_idx = rows[i].mask_idx};
    plan.is_random |= pass == SamplePass::kOnePass && slot.is_random;
    plan.has_logprobs |= slot.wants_logprobs;
    plan.has_masks |= has_mask;
    padding = pass;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].slot < 0) plan.rows[i] = {.pass = padding, .mask_idx = -1};
    ++plan.counts[static_cast<size_t>(plan.rows[i].pass)];
  }
  return plan;
}

SamplePlan SampledSlots::plan_padding(int num_rows, bool is_random) const {
  SamplePlan plan;
  plan.rows.assign(static_cast<size_t>(num_rows), {.pass = first_pass_, .mask_idx = -1});
  plan.counts[static_cast<size_t>(first_pass_)] = num_rows;
  plan.is_random = is_random && first_pass_ == SamplePass::kOnePass;
  return plan;
}

}  // namespace quire::cuda
