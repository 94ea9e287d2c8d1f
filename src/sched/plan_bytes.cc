#include "sched/plan_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "base/byte_archive.h"
#include "sample/sampling_fields.h"
#include "sched/policy.h"

namespace quire {
namespace {

// A SlotAdded with the objects that it points to. The pointers themselves are not written.
struct PlainSlot {
  SlotAdded added;
  SamplingSpec sampling;
  SamplingParams params;
};

template <typename Value, typename T>
concept Is = std::is_same_v<std::remove_const_t<Value>, T>;

}  // namespace

// ADL finds these for the types of the namespace quire.

void fields(ByteWriter& writer, const TokenIds& token_ids) {
  writer(token_ids.get());
}

void fields(ByteReader& reader, TokenIds& token_ids) {
  std::vector<int32_t> ids;
  reader(ids);
  token_ids = std::move(ids);
}

template <typename Archive, Is<SamplingParams> Value>
void fields(Archive& archive, Value& p) {
  archive(p.n, p.temperature, p.top_p, p.top_k, p.min_p, p.seed, p.repetition_penalty,
          p.presence_penalty, p.frequency_penalty, p.logit_bias, p.allowed_token_ids, p.bad_words,
          p.max_tokens, p.min_tokens, p.stop, p.stop_token_ids, p.include_stop_str_in_output,
          p.ignore_eos, p.logprobs, p.prompt_logprobs, p.skip_special_tokens, p.detokenize);
}

template <typename Archive, Is<PlainSlot> Value>
void fields(Archive& archive, Value& s) {
  archive(s.added.slot, s.added.seq_id, s.added.token_ids, s.added.num_prompt_tokens,
          s.sampling.seed, s.sampling.end_token_ids, s.sampling.bad_words_ids, s.params);
}

template <typename Archive, Is<BlockTableAppend> Value>
void fields(Archive& archive, Value& a) {
  archive(a.slot, a.table, a.first, a.block_ids);
}

template <typename Archive, Is<SeqSpan> Value>
void fields(Archive& archive, Value& s) {
  archive(s.seq_id, s.slot, s.decodes, s.num_computed, s.num_tokens, s.first_token, s.num_blocks,
          s.samples, s.token_after, s.num_drafts, s.num_prompt_logprobs, s.mask_idx,
          s.reports_drafts);
}

namespace {

template <typename Archive, Is<BatchPlan> Value, Is<std::vector<PlainSlot>> Slots>
void all_fields(Archive& archive, Value& p, Slots& slots) {
  archive(p.step_id, p.slots_removed, slots, p.block_appends, p.decode_q_len, p.max_next_drafts,
          p.spans, p.num_decode, p.token_ids, p.token_masks);
}

bool is_below(int value, int64_t end) {
  return value >= 0 && value < end;
}

bool are_tokens(const std::vector<int32_t>& ids, int first, int vocab_size) {
  return std::ranges::all_of(ids, [&](int32_t id) { return id >= first && id < vocab_size; });
}

struct Bounds {
  const SchedulerConfig& limits;
  int vocab_size;
};

// Entries of a block table.
int max_blocks(const Bounds& bounds) {
  return num_blocks_for(bounds.limits.max_model_len, bounds.limits.block_size);
}

bool is_logprobs_count(int count) {
  return count >= -1 && count <= kMaxLogprobs;
}

bool fits(const PlainSlot& slot, const Bounds& bounds) {
  const std::vector<int32_t>& token_ids = slot.added.token_ids.get();
  return is_below(slot.added.slot, bounds.limits.max_num_seqs) && !token_ids.empty() &&
         is_below(slot.added.num_prompt_tokens, std::ssize(token_ids) + 1) &&
         std::ssize(token_ids) <= int64_t{bounds.limits.max_model_len} + 1 &&
         is_logprobs_count(slot.params.logprobs.value_or(-1)) &&
         is_logprobs_count(slot.params.prompt_logprobs.value_or(-1)) &&
         are_tokens(token_ids, 0, bounds.vocab_size) &&
         are_tokens(slot.params.allowed_token_ids, 0, bounds.vocab_size) &&
         std::ranges::all_of(
             slot.sampling.bad_words_ids,
             [&](const auto& ids) { return are_tokens(ids, 0, bounds.vocab_size); }) &&
         std::ranges::all_of(slot.params.logit_bias, [&](const auto& bias) {
           return is_below(bias.first, bounds.vocab_size);
         });
}

bool fits(const BlockTableAppend& append, const Bounds& bounds) {
  if (!is_below(append.slot, bounds.limits.max_num_seqs) ||
      !is_below(append.table, std::ssize(bounds.limits.tables))) {
    return false;
  }
  const int num_blocks = bounds.limits.tables[static_cast<size_t>(append.table)].num_blocks;
  return append.first >= 0 &&
         int64_t{append.first} + std::ssize(append.block_ids) <= max_blocks(bounds) &&
         std::ranges::all_of(append.block_ids, [&](int id) { return is_below(id, num_blocks); });
}

// Returns whether the spans, one after the other, cover exactly the plan's tokens.
bool are_adjacent(const BatchPlan& plan) {
  int64_t num_tokens = 0;
  for (const SeqSpan& span : plan.spans) {
    if (span.first_token != num_tokens || span.num_tokens <= 0) return false;
    num_tokens += span.num_tokens;
  }
  return num_tokens == std::ssize(plan.token_ids);
}

// Returns whether decode_q_len and num_decode are within bounds and the first num_decode spans have
// that length. Runners rely on both.
bool decodes_fit(const BatchPlan& plan, const Bounds& bounds) {
  return plan.decode_q_len >= 1 && plan.decode_q_len <= int64_t{bounds.limits.num_drafts} + 1 &&
         is_below(plan.num_decode, std::ssize(plan.spans) + 1) &&
         std::ranges::all_of(
             std::span(plan.spans).first(static_cast<size_t>(plan.num_decode)),
             [&](const auto& span) { return span.num_tokens == plan.decode_q_len; });
}

bool fits(const SeqSpan& span, const BatchPlan& plan, const Bounds& bounds) {
  const auto num_masks = std::ssize(plan.token_masks);
  return is_below(span.slot, bounds.limits.max_num_seqs) &&
         is_below(span.num_blocks, int64_t{max_blocks(bounds)} + 1) &&
         is_below(span.num_computed, int64_t{span.num_blocks} * bounds.limits.block_size) &&
         is_below(span.num_drafts, std::min(span.num_tokens, bounds.limits.num_drafts + 1)) &&
         is_logprobs_count(span.num_prompt_logprobs) &&
         is_below(span.token_after, bounds.vocab_size) && span.mask_idx >= -1 &&
         (span.mask_idx < 0 || int64_t{span.mask_idx} + span.num_drafts < num_masks);
}

bool fits(const BatchPlan& plan, const std::vector<PlainSlot>& slots, const Bounds& bounds) {
  const auto num_words = static_cast<size_t>(bounds.vocab_size + 31) / 32;
  return std::ranges::all_of(
             plan.slots_removed,
             [&](int slot) { return is_below(slot, bounds.limits.max_num_seqs); }) &&
         std::ranges::all_of(slots, [&](const auto& slot) { return fits(slot, bounds); }) &&
         std::ranges::all_of(plan.block_appends,
                             [&](const auto& append) { return fits(append, bounds); }) &&
         std::ranges::all_of(plan.spans,
                             [&](const auto& span) { return fits(span, plan, bounds); }) &&
         std::ssize(plan.spans) <= bounds.limits.max_num_seqs &&
         std::ssize(plan.token_ids) <= bounds.limits.max_num_batched_tokens && are_adjacent(plan) &&
         are_tokens(plan.token_ids, kPlaceholderToken, bounds.vocab_size) &&
         std::ssize(plan.token_masks) <=
             int64_t{bounds.limits.max_num_seqs} * (bounds.limits.num_drafts + 1) &&
         std::ranges::all_of(plan.token_masks,
                             [&](const auto& mask) { return mask.size() <= num_words; }) &&
         decodes_fit(plan, bounds) && is_below(plan.max_next_drafts, bounds.limits.num_drafts + 1);
}

}  // namespace

std::string plan_to_bytes(const BatchPlan& plan) {
  std::vector<PlainSlot> slots;
  for (const SlotAdded& added : plan.slots_added) {
    slots.push_back({added, *added.sampling, *added.sampling->params});
  }
  ByteWriter writer;
  all_fields(writer, plan, std::as_const(slots));
  return writer.take();
}

Result<BatchPlan> plan_from_bytes(std::string_view bytes, const SchedulerConfig& limits,
                                  int vocab_size) {
  const Bounds bounds = {limits, vocab_size};
  BatchPlan plan;
  std::vector<PlainSlot> slots;
  ByteReader reader(bytes);
  all_fields(reader, plan, slots);
  if (!reader.is_complete()) {
    return invalid_argument(fmt::format("[sched] a plan of {} bytes is malformed", bytes.size()));
  }
  if (!fits(plan, slots, bounds)) {
    return invalid_argument(fmt::format(
        "[sched] the plan of step {} contradicts itself or exceeds the limits of {} sequences, {} "
        "tokens, {} tokens per sequence, {} drafts per sequence, a vocabulary of {}, or the blocks "
        "of the KV cache",
        plan.step_id, bounds.limits.max_num_seqs, bounds.limits.max_num_batched_tokens,
        bounds.limits.max_model_len, bounds.limits.num_drafts, bounds.vocab_size));
  }
  for (PlainSlot& slot : slots) {
    slot.sampling.params = std::make_shared<const SamplingParams>(std::move(slot.params));
    slot.added.sampling = std::make_shared<const SamplingSpec>(std::move(slot.sampling));
    plan.slots_added.push_back(std::move(slot.added));
  }
  return plan;
}

}  // namespace quire
