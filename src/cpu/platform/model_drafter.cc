#include "cpu/platform/model_drafter.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/platform/slot_tokens.h"
#include "platform/batch_inputs.h"
#include "sample/sampler.h"

namespace quire {
namespace {

class ModelDrafter final : public Drafter {
 public:
  ModelDrafter(const DraftModelParts& parts, const DrafterLimits& limits, HostDevice& device)
      : parts_(parts),
        limits_(limits),
        head_(dynamic_cast<DraftHead*>(parts.instance.model)),
        num_ahead_(head_ == nullptr ? 0 : 1),
        device_(device),
        tokens_(limits),
        sampling_(static_cast<size_t>(limits.max_num_seqs)),
        num_cached_(static_cast<size_t>(limits.max_num_seqs)) {}

  Status allocate_buffers() {
    const ModelConfig& config = model().config();
    const ModelLimits& limits = parts_.limits;
    QUIRE_ASSIGN_OR_RETURN(
        logits_, ops().allocate({limits.max_num_logit_rows, config.vocab_size}, DType::kF32));
    if (head_ == nullptr) return {};
    for (Tensor* buffer : {&combined_, &hidden_}) {
      QUIRE_ASSIGN_OR_RETURN(*buffer, ops().allocate({limits.max_num_tokens, config.hidden_size},
                                                     ops().activation_dtype()));
    }
    return {};
  }

  Status update_slots(const BatchPlan& plan, Stream& /*stream*/) override {
    tokens_.update(plan);
    for (const SlotAdded& added : plan.slots_added) {
      num_cached(added.slot) = 0;
      sampling_[static_cast<size_t>(added.slot)] = added.sampling;
    }
    return {};
  }

  Status propose(const DraftCall& call, Stream& stream) override {
    QUIRE_RETURN_IF_ERROR(compute_new_tokens(call, stream));
    while (!drafting_seqs_.empty()) {
      QUIRE_RETURN_IF_ERROR(add_drafts(call, stream));
      if (!drafting_seqs_.empty()) QUIRE_RETURN_IF_ERROR(compute_drafts(call, stream));
    }
    return {};
  }

 private:
  // Consecutive positions of a sequence that a pass computes.
  struct Chunk {
    size_t span_idx = 0;                      // of the call
    int first = 0;                            // position
    std::span<const int32_t> token_ids = {};  // that the model reads at these positions
    int first_row = 0;                        // heads only: row of `first` in the target's step
  };
  // A sequence that gets drafts in this call.
  struct DraftingSeq {
    size_t span_idx = 0;
    int32_t row = 0;  // token of the last pass, whose logits predict the next draft
  };

  Model& model() const { return *parts_.instance.model; }
  Ops& ops() const { return *device_.ops; }
  int& num_cached(int slot) { return num_cached_[static_cast<size_t>(slot)]; }

  // As DraftHead::target_ids().
  std::span<const int32_t> target_ids() const {
    return head_ == nullptr ? std::span<const int32_t>() : head_->target_ids();
  }
  int32_t target_id(int32_t draft_id) const {
    const std::span<const int32_t> ids = target_ids();
    return ids.empty() ? draft_id : ids[static_cast<size_t>(draft_id)];
  }

  // Tokens that fit the sequence's blocks and the model's context.
  int capacity(const SeqSpan& span) const {
    return std::min(span.num_blocks * parts_.limits.page_size, parts_.limits.max_model_len);
  }

  Chunk new_tokens(const DraftCall& call, size_t span_idx);

  // Runs the model over the chunks. Chunks of one token must come first. A head reads the rows of
  // hidden_.
  Status run_pass(const DraftCall& call, std::span<const Chunk> chunks, Stream& stream);
  // Writes the target's hidden states of the chunks' positions to hidden_.
  void read_taps(const DraftCall& call, std::span<const Chunk> chunks, Stream& stream);
  // Computes the tokens of the step that the model has not seen, and starts drafting for the
  // sequences with num_wanted > 0.
  Status compute_new_tokens(const DraftCall& call, Stream& stream);
  // Adds one draft to each sequence, from the logits of the last pass. A sequence stops at
  // num_wanted drafts, or when the model has no place for another token.
  Status add_drafts(const DraftCall& call, Stream& stream);
  // The draft id of a slot's next draft, whose confidence it writes; absent if its logits have a
  // NaN, or no finite value.
  std::optional<int32_t> next_draft(const DraftCall& call, int slot,
                                    std::span<const float> logits) const;
  // Computes the newest drafts.
  Status compute_drafts(const DraftCall& call, Stream& stream);

  DraftModelParts parts_;
  DrafterLimits limits_;
  DraftHead* head_;  // the model, if it is one; otherwise null
  // 1 for a head: at position p it reads the hidden state of p and the token of p + 1. Otherwise 0.
  int num_ahead_;
  HostDevice& device_;
  StepAttention attention_{parts_.instance, parts_.workspace};
  SlotTokens tokens_;
  std::vector<std::shared_ptr<const SamplingSpec>> sampling_;  // by slot
  std::vector<int> num_cached_;  // by slot: positions whose keys and values the model has written
  Tensor logits_;                // F32 [max_num_seqs, vocab_size]
  // Heads only: [max_num_tokens, hidden_size].
  Tensor combined_;  // of each token of the target's step
  Tensor hidden_;    // of each token of a pass

  std::vector<DraftingSeq> drafting_seqs_;
  std::vector<Chunk> chunks_;

  // One pass of the model.
  BatchPlan pass_;
  std::vector<SlotView> views_;
  BatchInputs inputs_;
  std::vector<const AttentionBatch*> batches_;
};

Status ModelDrafter::run_pass(const DraftCall& call, std::span<const Chunk> chunks,
                              Stream& stream) {
  pass_ = BatchPlan();
  views_.clear();
  for (const Chunk& chunk : chunks) {
    const SeqSpan& span = call.spans[chunk.span_idx];
    const auto num_tokens = static_cast<int>(chunk.token_ids.size());
    if (num_tokens == 1) ++pass_.num_decode;
    pass_.spans.push_back({.slot = span.slot,
                           .num_computed = chunk.first,
                           .num_tokens = num_tokens,
                           .first_token = pass_.num_tokens(),
                           .num_blocks = span.num_blocks});
    pass_.token_ids.insert(pass_.token_ids.end(), chunk.token_ids.begin(), chunk.token_ids.end());
    views_.push_back(call.slot_views[chunk.span_idx]);
    num_cached(span.slot) = chunk.first + num_tokens;
  }
  inputs_.build(pass_, pass_.spans, views_, parts_.limits.page_size, parts_.windows);
  batches_.clear();
  for (const TableInputs& table : inputs_.tables) batches_.push_back(&table.attention);
  QUIRE_ASSIGN_OR_RETURN(const std::span<const KvGroupStep> steps,
                         attention_.update(batches_, attention_.choose(*batches_[0]), stream));
  StepInput input = {.num_tokens = pass_.num_tokens(),
                     .token_ids = inputs_.token_ids.data(),
                     .positions = inputs_.positions.data(),
                     .kv_groups = steps};
  if (head_ != nullptr) input.hidden = hidden_.view.rows(0, input.num_tokens);
  return model().forward(input, stream);
}

void ModelDrafter::read_taps(const DraftCall& call, std::span<const Chunk> chunks, Stream& stream) {
  const SeqSpan& last = call.spans.back();
  const int num_step_tokens = last.first_token + last.num_tokens;
  head_->combine(parts_.target->taps().rows(0, num_step_tokens),
                 combined_.view.rows(0, num_step_tokens), stream);
  std::vector<int32_t> rows;
  for (const Chunk& chunk : chunks) {
    for (size_t i = 0; i < chunk.token_ids.size(); ++i) {
      rows.push_back(chunk.first_row + static_cast<int32_t>(i));
    }
  }
  ops().gather_rows(combined_.view, rows.data(), hidden_.view.rows(0, std::ssize(rows)), stream);
}

// Positions that the target has computed and the drafter has not. A model skips accepted drafts
// whose keys and values it wrote while drafting. A head recomputes them: it drafted from its own
// states, and now has the target's.
ModelDrafter::Chunk ModelDrafter::new_tokens(const DraftCall& call, size_t span_idx) {
  const SeqSpan& span = call.spans[span_idx];
  if (span.samples) tokens_.append_sampled(call, span.slot);
  const std::vector<int32_t>& tokens = tokens_.of(span.slot);
  const int first_of_step =
      span.decodes ? call.slot_views[span_idx].num_computed : span.num_computed;
  const bool may_have_drafted = span.decodes && head_ == nullptr;
  const int first = may_have_drafted ? std::min(num_cached(span.slot), call.num_computed[span.slot])
                                     : first_of_step;
  const int end = span.samples ? static_cast<int>(tokens.size()) - num_ahead_ : span.kv_len_bound();
  const int num_new = std::max(std::min(end, capacity(span)) - first, 0);
  // Also where nothing is computed: a cached prefix may be longer than the drafter's context.
  num_cached(span.slot) = first + num_new;
  return {.span_idx = span_idx,
          .first = first,
          .token_ids = std::span(tokens).subspan(static_cast<size_t>(first + num_ahead_),
                                                 static_cast<size_t>(num_new)),
          .first_row = span.first_token + first - first_of_step};
}

Status ModelDrafter::compute_new_tokens(const DraftCall& call, Stream& stream) {
  chunks_.clear();
  drafting_seqs_.clear();
  for (size_t i = 0; i < call.spans.size(); ++i) {
    chunks_.push_back(new_tokens(call, i));
    if (call.spans[i].samples) call.num_proposed[call.spans[i].slot] = 0;
  }
  std::erase_if(chunks_, [](const Chunk& chunk) { return chunk.token_ids.empty(); });
  if (chunks_.empty()) return {};
  std::stable_partition(chunks_.begin(), chunks_.end(),
                        [](const Chunk& chunk) { return chunk.token_ids.size() == 1; });
  if (head_ != nullptr) read_taps(call, chunks_, stream);
  QUIRE_RETURN_IF_ERROR(run_pass(call, chunks_, stream));
  for (size_t c = 0; c < chunks_.size(); ++c) {
    const size_t i = chunks_[c].span_idx;
    const SeqSpan& span = call.spans[i];
    const auto num_known = static_cast<int>(tokens_.of(span.slot).size());
    const bool reached_newest = num_cached(span.slot) == num_known - num_ahead_;
    if (!span.samples || !reached_newest || call.num_wanted[i] == 0) continue;
    const SeqSpan& computed = pass_.spans[c];
    drafting_seqs_.push_back(
        {.span_idx = i, .row = computed.first_token + computed.num_tokens - 1});
  }
  return {};
}

Status ModelDrafter::add_drafts(const DraftCall& call, Stream& stream) {
  std::vector<int32_t> rows;
  for (const DraftingSeq& drafting : drafting_seqs_) rows.push_back(drafting.row);
  const auto num_rows = static_cast<int>(rows.size());
  const TensorView logits = logits_.view.rows(0, num_rows);
  QUIRE_RETURN_IF_ERROR(model().compute_logits(rows.data(), num_rows, logits, stream));
  std::vector<std::optional<int32_t>> drafts(rows.size());
  device_.pool.parallel_for(num_rows, [&](int64_t row) {
    const auto i = static_cast<size_t>(row);
    const auto width = static_cast<size_t>(logits.shape[1]);
    drafts[i] = next_draft(call, call.spans[drafting_seqs_[i].span_idx].slot,
                           {logits.as<float>() + i * width, width});
  });
  std::vector<DraftingSeq> unfinished;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (!drafts[i]) continue;
    const size_t span_idx = drafting_seqs_[i].span_idx;
    const SeqSpan& span = call.spans[span_idx];
    int32_t& num_proposed = call.num_proposed[span.slot];
    tokens_.next_tokens(call, span.slot)[static_cast<size_t>(++num_proposed)] =
        target_id(*drafts[i]);
    const bool has_room = num_cached(span.slot) < capacity(span);
    if (has_room && num_proposed < call.num_wanted[span_idx])
      unfinished.push_back(drafting_seqs_[i]);
  }
  drafting_seqs_ = std::move(unfinished);
  return {};
}

std::optional<int32_t> ModelDrafter::next_draft(const DraftCall& call, int slot,
                                                std::span<const float> logits) const {
  const auto draft_idx = static_cast<size_t>(call.num_proposed[slot]);
  float& confidence = tokens_.confidences(call, slot)[draft_idx];
  if (call.probs == nullptr) {
    confidence = lead_of_most_likely(logits);
    return most_likely_token(logits);
  }
  const SamplingSpec& sampling = *sampling_[static_cast<size_t>(slot)];
  const auto num_drafts = static_cast<size_t>(limits_.num_drafts);
  const auto vocab_size = static_cast<size_t>(limits_.vocab_size);
  const size_t row = static_cast<size_t>(slot) * num_drafts + draft_idx;
  const std::span<float> probs(call.probs + row * vocab_size, vocab_size);
  const DraftNoise noise(sampling.seed, static_cast<uint64_t>(call.num_computed[slot]) + 1);
  const auto sample = [&](std::span<float> out) {
    const auto draft = sample_draft(logits, *sampling.params, noise.draft(draft_idx), out);
    confidence = std::ranges::max(out);
    return draft;
  };
  if (target_ids().empty()) return sample(probs);
  thread_local std::vector<float> draft_probs;  // by draft id
  draft_probs.resize(logits.size());
  const std::optional<int32_t> draft = sample(draft_probs);
  std::ranges::fill(probs, 0.0F);
  for (size_t id = 0; id < draft_probs.size(); ++id) {
    probs[static_cast<size_t>(target_ids()[id])] = draft_probs[id];
  }
  return draft;
}

Status ModelDrafter::compute_drafts(const DraftCall& call, Stream& stream) {
  if (head_ != nullptr) {
    std::vector<int32_t> rows;
    for (const DraftingSeq& drafting : drafting_seqs_) rows.push_back(drafting.row);
    const auto num_rows = static_cast<int>(rows.size());
    QUIRE_RETURN_IF_ERROR(
        head_->output_states(rows.data(), num_rows, hidden_.view.rows(0, num_rows), stream));
  }
  chunks_.clear();
  for (DraftingSeq& drafting : drafting_seqs_) {
    const int slot = call.spans[drafting.span_idx].slot;
    drafting.row = static_cast<int32_t>(chunks_.size());
    chunks_.push_back({.span_idx = drafting.span_idx,
                       .first = num_cached(slot),
                       .token_ids = tokens_.next_tokens(call, slot)
                                        .subspan(static_cast<size_t>(call.num_proposed[slot]), 1)});
  }
  return run_pass(call, chunks_, stream);
}

}  // namespace

Result<std::unique_ptr<Drafter>> make_model_drafter(const DraftModelParts& parts,
                                                    const DrafterLimits& limits,
                                                    HostDevice& device) {
  auto drafter = std::make_unique<ModelDrafter>(parts, limits, device);
  QUIRE_RETURN_IF_ERROR(drafter->allocate_buffers());
  return std::unique_ptr<Drafter>(std::move(drafter));
}

}  // namespace quire
