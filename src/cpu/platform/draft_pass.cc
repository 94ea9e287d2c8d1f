#include "cpu/platform/draft_pass.h"

#include <algorithm>

#include "base/log.h"
#include "sample/sampler.h"

namespace quire {

int draft_capacity(const SeqSpan& span, const ModelLimits& limits) {
  return std::min(span.num_blocks * limits.page_size, limits.max_model_len);
}

Result<StepInput> DraftPass::build(const HostDraftCall& call, std::span<const DraftChunk> chunks) {
  const auto num_decode = std::ranges::count_if(
      chunks, [](const DraftChunk& chunk) { return chunk.token_ids.size() == 1; });
  return build_inputs(call, chunks, static_cast<int>(num_decode));
}

Result<StepInput> DraftPass::build_prompts(const HostDraftCall& call,
                                           std::span<const DraftChunk> chunks) {
  return build_inputs(call, chunks, 0);
}

Result<StepInput> DraftPass::build_inputs(const HostDraftCall& call,
                                          std::span<const DraftChunk> chunks, int num_decode) {
  pass_ = BatchPlan();
  pass_.num_decode = num_decode;
  views_.clear();
  for (const DraftChunk& chunk : chunks) {
    const SeqSpan& span = call.spans[chunk.span_idx];
    pass_.spans.push_back({.slot = span.slot,
                           .num_computed = chunk.first,
                           .num_tokens = static_cast<int>(chunk.token_ids.size()),
                           .first_token = pass_.num_tokens(),
                           .num_blocks = span.num_blocks});
    pass_.token_ids.insert(pass_.token_ids.end(), chunk.token_ids.begin(), chunk.token_ids.end());
    views_.push_back(call.slot_views[chunk.span_idx]);
  }
  inputs_.build(pass_, pass_.spans, views_, parts_.limits.page_size, parts_.windows);
  const DraftHead* const head = parts_.instance.model->draft_head();
  if (head != nullptr && head->reads_target_cache()) {
    for (int32_t& position : inputs_.positions) ++position;
  }
  batches_.clear();
  for (const TableInputs& table : inputs_.tables) batches_.push_back(&table.attention);
  QUIRE_ASSIGN_OR_RETURN(const std::span<const KvGroupStep> steps,
                         attention_.update(batches_, attention_.choose(*batches_[0]), stream_));
  return StepInput{.num_tokens = pass_.num_tokens(),
                   .token_ids = inputs_.token_ids.data(),
                   .positions = inputs_.positions.data(),
                   .kv_groups = steps};
}

Result<TappedStates> TappedStates::allocate(const DraftModelParts& parts, const TapReader& model,
                                            Ops& ops) {
  TappedStates states;
  states.target_ = parts.target;
  const Shape shape = {parts.limits.max_num_tokens, model.state_width()};
  for (Tensor* buffer : {&states.combined_, &states.hidden_}) {
    QUIRE_ASSIGN_OR_RETURN(*buffer, ops.allocate(shape, ops.activation_dtype()));
  }
  return states;
}

void TappedStates::read(const HostDraftCall& call, TapReader& model,
                        std::span<const DraftChunk> chunks, Ops& ops) {
  const SeqSpan& last = call.spans.back();
  const int num_step_tokens = last.first_token + last.num_tokens;
  model.combine(target_->taps().rows(0, num_step_tokens), combined_.view.rows(0, num_step_tokens));
  std::vector<int32_t> step_rows;
  for (const DraftChunk& chunk : chunks) {
    for (size_t i = 0; i < chunk.token_ids.size(); ++i) {
      step_rows.push_back(chunk.first_row + static_cast<int32_t>(i));
    }
  }
  ops.gather_rows(combined_.view, step_rows.data(), rows(std::ssize(step_rows)));
}

void DraftChooser::update(const BatchPlan& plan) {
  for (const SlotAdded& added : plan.slots_added) {
    sampling_[static_cast<size_t>(added.slot)] = added.sampling;
  }
}

std::optional<int32_t> DraftChooser::choose(const HostDraftCall& call, int slot,
                                            std::span<const float> logits,
                                            std::span<const int32_t> target_ids) const {
  const std::optional<int32_t> draft = try_choose(call, slot, logits, target_ids);
  if (draft) return draft;
  std::call_once(has_warned_, [] {
    log_warning(
        "[cpu] the drafter's logits have a NaN or no finite value, so a sequence gets no draft; "
        "the drafter's weights are broken or do not fit the model (this is logged once)");
  });
  return draft;
}

std::optional<int32_t> DraftChooser::try_choose(const HostDraftCall& call, int slot,
                                                std::span<const float> logits,
                                                std::span<const int32_t> target_ids) const {
  const auto draft_idx = static_cast<size_t>(call.num_proposed[slot]);
  const size_t row =
      static_cast<size_t>(slot) * static_cast<size_t>(limits_.num_drafts) + draft_idx;
  float& confidence = call.confidences[row];
  if (call.probs == nullptr) {
    confidence = lead_of_most_likely(logits);
    const std::optional<int32_t> draft = most_likely_token(logits);
    if (!draft || target_ids.empty()) return draft;
    return target_ids[static_cast<size_t>(*draft)];
  }
  const SamplingSpec& sampling = *sampling_[static_cast<size_t>(slot)];
  const auto vocab_size = static_cast<size_t>(limits_.vocab_size);
  const std::span<float> probs(call.probs + row * vocab_size, vocab_size);
  const DraftNoise noise(sampling.seed, static_cast<uint64_t>(call.num_computed[slot]) + 1);
  const auto sample = [&](std::span<float> out) {
    const auto draft = sample_draft(logits, *sampling.params, noise.draft(draft_idx), out);
    confidence = std::ranges::max(out);
    return draft;
  };
  if (target_ids.empty()) return sample(probs);
  thread_local std::vector<float> draft_probs;  // by draft id
  draft_probs.resize(logits.size());
  const std::optional<int32_t> draft = sample(draft_probs);
  std::ranges::fill(probs, 0.0F);
  for (size_t id = 0; id < draft_probs.size(); ++id) {
    probs[static_cast<size_t>(target_ids[id])] = draft_probs[id];
  }
  if (!draft) return draft;
  return target_ids[static_cast<size_t>(*draft)];
}

Status DraftBuffers::allocate(const TapReader* reader) {
  const Shape shape = {parts.limits.max_num_logit_rows, parts.instance.model->config().vocab_size};
  QUIRE_ASSIGN_OR_RETURN(logits, ops().allocate(shape, DType::kF32));
  if (reader == nullptr) return {};
  QUIRE_ASSIGN_OR_RETURN(states, TappedStates::allocate(parts, *reader, ops()));
  return {};
}

void DraftBuffers::update_slots(const BatchPlan& plan) {
  tokens.update(plan);
  chooser.update(plan);
}

std::span<float> DraftBuffers::logits_row(int64_t row) const {
  const TensorView view = logits.view.rows(row, 1);
  return {view.as<float>(), static_cast<size_t>(view.shape[1])};
}

}  // namespace quire
