// Drafts a block of tokens per sequence in one pass of a model with a block_head().
#include <algorithm>
#include <optional>
#include <vector>

#include "base/check.h"
#include "cpu/platform/draft_pass.h"
#include "cpu/platform/model_drafter.h"

namespace quire {
namespace {

class BlockDrafter final : public HostDrafter {
 public:
  BlockDrafter(const DraftModelParts& parts, const DrafterLimits& limits, HostDevice& device)
      : buffers_(parts, limits, device), head_(*parts.instance.model->block_head()) {
    QUIRE_CHECK(limits.num_drafts <= layout().max_drafts(),
                "[cpu] more drafts than the drafter's block has");
  }

  Status allocate() {
    QUIRE_RETURN_IF_ERROR(buffers_.allocate(&head_));
    if (!head_.has_transitions()) return {};
    const Shape shape = {buffers_.limits.max_num_seqs, model().config().vocab_size};
    QUIRE_ASSIGN_OR_RETURN(transitions_, buffers_.ops().allocate(shape, DType::kF32));
    return {};
  }

  Status update_slots(const BatchPlan& plan) override {
    buffers_.update_slots(plan);
    return {};
  }

  Status propose(const HostDraftCall& call) override {
    QUIRE_RETURN_IF_ERROR(write_context(call));
    find_blocks(call);
    if (blocks_.empty()) return {};
    QUIRE_RETURN_IF_ERROR(compute_blocks(call));
    const int most = buffers_.limits.num_drafts;
    for (int i = 0; i < most && !blocks_.empty(); ++i) add_drafts(call);
    return {};
  }

 private:
  // A sequence that gets drafts in this call.
  struct Block {
    size_t span_idx = 0;
    int num_drafts = 0;
    int first_row = 0;  // the first row of its drafts' logits
  };

  Model& model() const { return *buffers_.parts.instance.model; }
  const BlockLayout& layout() const { return head_.block(); }
  int slot_of(const HostDraftCall& call, const Block& block) const {
    return call.spans[block.span_idx].slot;
  }
  // The logits of the block's next draft.
  std::span<float> next_logits(const HostDraftCall& call, const Block& block) const {
    return buffers_.logits_row(block.first_row + call.num_proposed[slot_of(call, block)]);
  }

  DraftChunk new_context(const HostDraftCall& call, size_t span_idx);
  // Writes the context of all tokens that the step has computed and not rejected.
  Status write_context(const HostDraftCall& call);
  // Finds the sequences whose whole context is written and with num_wanted > 0.
  void find_blocks(const HostDraftCall& call);
  // Writes the logits of all drafts.
  Status compute_blocks(const HostDraftCall& call);
  // Adds one draft to each sequence, and removes the sequences that have all their drafts.
  void add_drafts(const HostDraftCall& call);
  // Adds the transitions of the token before each sequence's next draft to the draft's logits.
  void add_transitions(const HostDraftCall& call);

  DraftBuffers buffers_;
  BlockHead& head_;     // of the model
  Tensor transitions_;  // F32 [max_num_seqs, vocab_size]; empty if the model has none

  std::vector<DraftChunk> context_;  // one per span of the call; may be empty
  std::vector<Block> blocks_;
};

DraftChunk BlockDrafter::new_context(const HostDraftCall& call, size_t span_idx) {
  const SeqSpan& span = call.spans[span_idx];
  if (span.samples) buffers_.tokens.append_sampled(call, span.slot);
  const std::vector<int32_t>& tokens = buffers_.tokens.of(span.slot);
  const int first = span.decodes ? call.slot_views[span_idx].num_computed : span.num_computed;
  // The newest token has no hidden state yet.
  const int end = span.samples ? static_cast<int>(tokens.size()) - 1 : span.kv_len_bound();
  const int num_new = std::max(std::min(end, buffers_.capacity(span)) - first, 0);
  return {.span_idx = span_idx,
          .first = first,
          .token_ids =
              std::span(tokens).subspan(static_cast<size_t>(first), static_cast<size_t>(num_new)),
          .first_row = span.first_token};
}

Status BlockDrafter::write_context(const HostDraftCall& call) {
  context_.clear();
  std::vector<DraftChunk> chunks;
  for (size_t i = 0; i < call.spans.size(); ++i) {
    context_.push_back(new_context(call, i));
    if (!context_.back().token_ids.empty()) chunks.push_back(context_.back());
  }
  if (chunks.empty()) return {};
  buffers_.states.read(call, head_, chunks, buffers_.ops());
  QUIRE_ASSIGN_OR_RETURN(StepInput input, buffers_.pass.build_prompts(call, chunks));
  input.hidden = buffers_.states.rows(input.num_tokens);
  return head_.write_context(input);
}

// Lowers the number of drafts to the positions that the sequence's blocks and the drafter's context
// have left.
void BlockDrafter::find_blocks(const HostDraftCall& call) {
  blocks_.clear();
  for (size_t i = 0; i < call.spans.size(); ++i) {
    const SeqSpan& span = call.spans[i];
    if (!span.samples) continue;
    call.num_proposed[span.slot] = 0;
    const int newest = static_cast<int>(buffers_.tokens.of(span.slot).size()) - 1;
    const DraftChunk& context = context_[i];
    if (context.first + std::ssize(context.token_ids) != newest) continue;
    const int num_places = buffers_.capacity(span) - newest;
    const int most = std::min(call.num_wanted[i], num_places - layout().num_before_drafts());
    if (most > 0) blocks_.push_back({.span_idx = i, .num_drafts = most});
  }
}

// If there is room, the block of a sequence has as many mask tokens as a step can verify, even if
// fewer drafts are wanted: the mask tokens attend to each other, and the drafter was trained with a
// fixed number of them.
Status BlockDrafter::compute_blocks(const HostDraftCall& call) {
  const auto most_tokens = static_cast<size_t>(layout().num_tokens(buffers_.limits.num_drafts));
  std::vector<int32_t> ids(blocks_.size() * most_tokens, layout().mask_token_id);
  std::vector<DraftChunk> chunks;
  for (const Block& block : blocks_) {
    const SeqSpan& span = call.spans[block.span_idx];
    const std::vector<int32_t>& tokens = buffers_.tokens.of(span.slot);
    const auto newest = tokens.size() - 1;
    const std::span block_ids = std::span(ids).subspan(chunks.size() * most_tokens, most_tokens);
    block_ids.front() = tokens.back();
    const auto num_places = static_cast<size_t>(buffers_.capacity(span)) - newest;
    chunks.push_back({.span_idx = block.span_idx,
                      .first = static_cast<int>(newest),
                      .token_ids = block_ids.first(std::min(most_tokens, num_places))});
  }
  QUIRE_ASSIGN_OR_RETURN(const StepInput input, buffers_.pass.build_prompts(call, chunks));
  QUIRE_RETURN_IF_ERROR(model().forward(input));
  std::vector<int32_t> rows;
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const int first = buffers_.pass.span(b).first_token + layout().num_before_drafts();
    blocks_[b].first_row = static_cast<int>(rows.size());
    for (int i = 0; i < blocks_[b].num_drafts; ++i) rows.push_back(first + i);
  }
  const auto num_rows = static_cast<int>(rows.size());
  return model().compute_logits(rows.data(), num_rows, buffers_.logits.view.rows(0, num_rows));
}

void BlockDrafter::add_drafts(const HostDraftCall& call) {
  if (head_.has_transitions()) add_transitions(call);
  std::vector<std::optional<int32_t>> drafts(blocks_.size());
  buffers_.device.pool.parallel_for(std::ssize(blocks_), [&](int64_t b) {
    const Block& block = blocks_[static_cast<size_t>(b)];
    drafts[static_cast<size_t>(b)] = buffers_.chooser.choose(
        call, slot_of(call, block), next_logits(call, block), head_.target_ids());
  });
  std::vector<Block> unfinished;
  for (size_t b = 0; b < drafts.size(); ++b) {
    if (!drafts[b]) continue;
    const int slot = slot_of(call, blocks_[b]);
    int32_t& num_proposed = call.num_proposed[slot];
    buffers_.tokens.next_tokens(call, slot)[static_cast<size_t>(++num_proposed)] = *drafts[b];
    if (num_proposed < blocks_[b].num_drafts) unfinished.push_back(blocks_[b]);
  }
  blocks_ = std::move(unfinished);
}

void BlockDrafter::add_transitions(const HostDraftCall& call) {
  std::vector<int32_t> previous;
  for (const Block& block : blocks_) {
    const int slot = slot_of(call, block);
    const auto num_proposed = static_cast<size_t>(call.num_proposed[slot]);
    previous.push_back(buffers_.tokens.next_tokens(call, slot)[num_proposed]);
  }
  const auto num_rows = static_cast<int>(previous.size());
  head_.transitions(previous.data(), num_rows, transitions_.view.rows(0, num_rows));
  buffers_.device.pool.parallel_for(num_rows, [&](int64_t b) {
    const Block& block = blocks_[static_cast<size_t>(b)];
    const std::span<float> logits = next_logits(call, block);
    const auto* summands = transitions_.view.rows(b, 1).as<float>();
    for (size_t id = 0; id < logits.size(); ++id) logits[id] += summands[id];
  });
}

}  // namespace

Result<std::shared_ptr<HostDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits,
                                                        HostDevice& device) {
  auto drafter = std::make_shared<BlockDrafter>(parts, limits, device);
  QUIRE_RETURN_IF_ERROR(drafter->allocate());
  return std::shared_ptr<HostDrafter>(std::move(drafter));
}

}  // namespace quire
