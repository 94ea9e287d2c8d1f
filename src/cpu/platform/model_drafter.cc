#include "cpu/platform/model_drafter.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "cpu/platform/draft_pass.h"

namespace quire {
namespace {

class ModelDrafter final : public HostDrafter {
 public:
  ModelDrafter(const DraftModelParts& parts, const DrafterLimits& limits, HostDevice& device)
      : buffers_(parts, limits, device),
        head_(parts.instance.model->draft_head()),
        num_ahead_(head_ == nullptr ? 0 : 1),
        reads_target_cache_(head_ != nullptr && head_->reads_target_cache()),
        num_cached_(static_cast<size_t>(limits.max_num_seqs)) {}

  Status allocate() { return buffers_.allocate(head_); }

  Status update_slots(const BatchPlan& plan) override {
    buffers_.update_slots(plan);
    for (const SlotAdded& added : plan.slots_added) num_cached(added.slot) = 0;
    return {};
  }

  Status propose(const HostDraftCall& call) override {
    QUIRE_RETURN_IF_ERROR(compute_new_tokens(call));
    while (!drafting_seqs_.empty()) {
      QUIRE_RETURN_IF_ERROR(add_drafts(call));
      if (!drafting_seqs_.empty()) QUIRE_RETURN_IF_ERROR(compute_drafts(call));
    }
    return {};
  }

 private:
  // A sequence that gets drafts in this call.
  struct DraftingSeq {
    size_t span_idx = 0;
    int32_t row = 0;  // the token of the last pass whose logits predict the next draft
  };

  Model& model() const { return *buffers_.parts.instance.model; }
  int& num_cached(int slot) { return num_cached_[static_cast<size_t>(slot)]; }

  // Returns TapReader::target_ids(), or nothing for an ordinary model.
  std::span<const int32_t> target_ids() const {
    return head_ == nullptr ? std::span<const int32_t>() : head_->target_ids();
  }

  DraftChunk new_tokens(const HostDraftCall& call, size_t span_idx);

  // Runs the model over the chunks. Chunks of one token must come first. A head reads the first
  // rows of the tapped states.
  Status run_pass(const HostDraftCall& call, std::span<const DraftChunk> chunks);
  // Does the same for a pass whose logits are not needed. A head only writes keys and values, and a
  // model that reads the target's cache does nothing.
  Status write_context(const HostDraftCall& call, std::span<const DraftChunk> chunks);
  // The input of a pass over the chunks, whose keys and values it writes.
  Result<StepInput> build_pass(const HostDraftCall& call, std::span<const DraftChunk> chunks);
  // Reduces chunks_ to the newest token of each sequence that drafts, for a model that reads the
  // target's cache.
  void keep_newest_tokens(const HostDraftCall& call);
  // Computes the tokens of the step that the model has not computed, and starts drafting for the
  // sequences with num_wanted > 0.
  Status compute_new_tokens(const HostDraftCall& call);
  // Adds one draft to each sequence, from the logits of the last pass. A sequence stops at
  // num_wanted drafts, or at the model's capacity.
  Status add_drafts(const HostDraftCall& call);
  // Computes the newest drafts.
  Status compute_drafts(const HostDraftCall& call);

  DraftBuffers buffers_;
  DraftHead* head_;  // of the model; null: an ordinary model
  // 1 for a head: at position p it reads the hidden state of p and the token of p + 1. Otherwise 0.
  int num_ahead_;
  bool reads_target_cache_;      // DraftHead::reads_target_cache()
  std::vector<int> num_cached_;  // by slot: positions whose keys and values the model has written

  std::vector<DraftingSeq> drafting_seqs_;
  std::vector<DraftChunk> chunks_;
};

Result<StepInput> ModelDrafter::build_pass(const HostDraftCall& call,
                                           std::span<const DraftChunk> chunks) {
  for (const DraftChunk& chunk : chunks) {
    num_cached(call.spans[chunk.span_idx].slot) =
        chunk.first + static_cast<int>(chunk.token_ids.size());
  }
  QUIRE_ASSIGN_OR_RETURN(StepInput input, buffers_.pass.build(call, chunks));
  if (head_ != nullptr) input.hidden = buffers_.states.rows(input.num_tokens);
  return input;
}

Status ModelDrafter::run_pass(const HostDraftCall& call, std::span<const DraftChunk> chunks) {
  QUIRE_ASSIGN_OR_RETURN(const StepInput input, build_pass(call, chunks));
  return model().forward(input);
}

Status ModelDrafter::write_context(const HostDraftCall& call, std::span<const DraftChunk> chunks) {
  if (reads_target_cache_) return {};
  if (head_ == nullptr) return run_pass(call, chunks);
  QUIRE_ASSIGN_OR_RETURN(const StepInput input, build_pass(call, chunks));
  return head_->write_context(input);
}

// Returns the positions that the target has computed and the drafter has not. An ordinary model
// skips accepted drafts, whose keys and values it wrote while drafting. A head recomputes them,
// because it drafted from its own states, and now has the target's.
DraftChunk ModelDrafter::new_tokens(const HostDraftCall& call, size_t span_idx) {
  const SeqSpan& span = call.spans[span_idx];
  if (span.samples) buffers_.tokens.append_sampled(call, span.slot);
  const std::vector<int32_t>& tokens = buffers_.tokens.of(span.slot);
  const int first_of_step =
      span.decodes ? call.slot_views[span_idx].num_computed : span.num_computed;
  const bool may_have_drafted = span.decodes && head_ == nullptr;
  const int first = may_have_drafted ? std::min(num_cached(span.slot), call.num_computed[span.slot])
                                     : first_of_step;
  const int end = span.samples ? static_cast<int>(tokens.size()) - num_ahead_ : span.kv_len_bound();
  const int num_new = std::max(std::min(end, buffers_.capacity(span)) - first, 0);
  // Set even if nothing is computed, because a cached prefix may be longer than the drafter's
  // context.
  num_cached(span.slot) = first + num_new;
  return {.span_idx = span_idx,
          .first = first,
          .token_ids = std::span(tokens).subspan(static_cast<size_t>(first + num_ahead_),
                                                 static_cast<size_t>(num_new)),
          .first_row = span.first_token + first - first_of_step};
}

void ModelDrafter::keep_newest_tokens(const HostDraftCall& call) {
  for (DraftChunk& chunk : chunks_) {
    const bool is_wanted =
        call.spans[chunk.span_idx].samples && call.num_wanted[chunk.span_idx] > 0;
    const auto num_left_out = static_cast<int>(chunk.token_ids.size()) - (is_wanted ? 1 : 0);
    if (num_left_out <= 0) continue;
    chunk.first += num_left_out;
    chunk.first_row += num_left_out;
    chunk.token_ids = chunk.token_ids.subspan(static_cast<size_t>(num_left_out));
  }
}

Status ModelDrafter::compute_new_tokens(const HostDraftCall& call) {
  chunks_.clear();
  drafting_seqs_.clear();
  for (size_t i = 0; i < call.spans.size(); ++i) {
    chunks_.push_back(new_tokens(call, i));
    if (call.spans[i].samples) call.num_proposed[call.spans[i].slot] = 0;
  }
  if (reads_target_cache_) keep_newest_tokens(call);
  std::erase_if(chunks_, [](const DraftChunk& chunk) { return chunk.token_ids.empty(); });
  if (chunks_.empty()) return {};
  std::stable_partition(chunks_.begin(), chunks_.end(),
                        [](const DraftChunk& chunk) { return chunk.token_ids.size() == 1; });
  if (head_ != nullptr) buffers_.states.read(call, *head_, chunks_, buffers_.ops());
  const bool wants_drafts = std::ranges::any_of(chunks_, [&](const DraftChunk& chunk) {
    return call.spans[chunk.span_idx].samples && call.num_wanted[chunk.span_idx] > 0;
  });
  if (!wants_drafts) return write_context(call, chunks_);
  QUIRE_RETURN_IF_ERROR(run_pass(call, chunks_));
  for (size_t c = 0; c < chunks_.size(); ++c) {
    const size_t i = chunks_[c].span_idx;
    const SeqSpan& span = call.spans[i];
    const auto num_known = static_cast<int>(buffers_.tokens.of(span.slot).size());
    const bool reached_newest = num_cached(span.slot) == num_known - num_ahead_;
    if (!span.samples || !reached_newest || call.num_wanted[i] == 0) continue;
    const SeqSpan& computed = buffers_.pass.span(c);
    drafting_seqs_.push_back(
        {.span_idx = i, .row = computed.first_token + computed.num_tokens - 1});
  }
  return {};
}

Status ModelDrafter::add_drafts(const HostDraftCall& call) {
  std::vector<int32_t> rows;
  for (const DraftingSeq& drafting : drafting_seqs_) rows.push_back(drafting.row);
  const auto num_rows = static_cast<int>(rows.size());
  const TensorView logits = buffers_.logits.view.rows(0, num_rows);
  QUIRE_RETURN_IF_ERROR(model().compute_logits(rows.data(), num_rows, logits));
  std::vector<std::optional<int32_t>> drafts(rows.size());
  buffers_.device.pool.parallel_for(num_rows, [&](int64_t row) {
    const auto i = static_cast<size_t>(row);
    const int slot = call.spans[drafting_seqs_[i].span_idx].slot;
    drafts[i] = buffers_.chooser.choose(call, slot, buffers_.logits_row(row), target_ids());
  });
  std::vector<DraftingSeq> unfinished;
  for (size_t i = 0; i < drafts.size(); ++i) {
    if (!drafts[i]) continue;
    const size_t span_idx = drafting_seqs_[i].span_idx;
    const SeqSpan& span = call.spans[span_idx];
    int32_t& num_proposed = call.num_proposed[span.slot];
    buffers_.tokens.next_tokens(call, span.slot)[static_cast<size_t>(++num_proposed)] = *drafts[i];
    const bool has_room = num_cached(span.slot) < buffers_.capacity(span);
    if (has_room && num_proposed < call.num_wanted[span_idx])
      unfinished.push_back(drafting_seqs_[i]);
  }
  drafting_seqs_ = std::move(unfinished);
  return {};
}

Status ModelDrafter::compute_drafts(const HostDraftCall& call) {
  if (head_ != nullptr) {
    std::vector<int32_t> rows;
    for (const DraftingSeq& drafting : drafting_seqs_) rows.push_back(drafting.row);
    const auto num_rows = static_cast<int>(rows.size());
    QUIRE_RETURN_IF_ERROR(
        head_->output_states(rows.data(), num_rows, buffers_.states.rows(num_rows)));
  }
  chunks_.clear();
  for (DraftingSeq& drafting : drafting_seqs_) {
    const int slot = call.spans[drafting.span_idx].slot;
    drafting.row = static_cast<int32_t>(chunks_.size());
    chunks_.push_back({.span_idx = drafting.span_idx,
                       .first = num_cached(slot) - (reads_target_cache_ ? 1 : 0),
                       .token_ids = buffers_.tokens.next_tokens(call, slot)
                                        .subspan(static_cast<size_t>(call.num_proposed[slot]), 1)});
  }
  return run_pass(call, chunks_);
}

}  // namespace

Result<std::shared_ptr<HostDrafter>> make_model_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device) {
  if (parts.instance.model->block_head() != nullptr) {
    return make_block_drafter(parts, limits, device);
  }
  auto drafter = std::make_shared<ModelDrafter>(parts, limits, device);
  QUIRE_RETURN_IF_ERROR(drafter->allocate());
  return std::shared_ptr<HostDrafter>(std::move(drafter));
}

}  // namespace quire
