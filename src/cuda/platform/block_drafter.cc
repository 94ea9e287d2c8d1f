#include "cuda/platform/block_drafter.h"

#include <utility>

#include "base/check.h"
#include "cuda/base/memory.h"
#include "cuda/platform/add_kernel.h"
#include "cuda/platform/draft_attention.h"
#include "cuda/sample/device_sampler.h"
#include "cuda/step/draft_inputs.h"

namespace quire::cuda {
namespace {

// Enqueues the same work for every step of one batch shape, so that it can be captured in a graph.
// After a step it writes the keys and values of all the step's tokens. Rejected drafts are after
// the accepted tokens, so the next block overwrites their keys and values. The proposals are one
// pass over a block per span.
class BlockDrafter final : public CudaDrafter {
 public:
  BlockDrafter(const DraftModelParts& parts, const DrafterLimits& limits, CudaOps& ops)
      : parts_(parts), limits_(limits), head_(*parts.instance.model->block_head()), ops_(ops) {
    QUIRE_CHECK(limits.num_drafts <= layout().max_drafts(),
                "[cuda] more drafts than the drafter's block has");
  }

  Status allocate(CudaStream& stream);

  // The device has all that a slot needs: the pages of its tokens, and its newest token.
  Status update_slots(const BatchPlan& /*plan*/, CudaStream& /*stream*/) override { return {}; }
  Status prepare_read(const CudaDraftCall& call, CudaStream& stream) override;
  Status prepare_proposal(const CudaDraftCall& call, CudaStream& stream) override;
  Status read_step(const CudaDraftCall& call, CudaStream& stream) override;
  Status propose(const CudaDraftCall& call, CudaStream& stream) override;
  bool has_graphs() const override { return true; }

 private:
  Model& model() const { return *parts_.instance.model; }
  const BlockLayout& layout() const { return head_.block(); }
  // A block always has mask tokens for all num_drafts drafts, even if fewer are proposed: its
  // tokens attend to each other, and the drafter was trained with blocks of one length.
  int block_len() const { return layout().num_tokens(limits_.num_drafts); }

  // Writes the logits of the call's proposals: [drafts, spans].
  Status compute_blocks(const CudaDraftCall& call, CudaStream& stream);
  // Chooses one draft per span. If the model adds logits according to the previous token
  // (transitions), the logits of a draft depend on the draft before it.
  void choose(const CudaDraftCall& call, int draft_idx, CudaStream& stream);

  DraftModelParts parts_;
  DrafterLimits limits_;
  BlockHead& head_;  // of the model
  CudaOps& ops_;
  DraftInputs inputs_;
  DraftAttention context_attention_{parts_};
  DraftAttention block_attention_{parts_};
  // The attention of the step that was prepared.
  std::span<const KvGroupStep> context_step_, block_step_;
  Tensor states_;       // [max_num_tokens, hidden_size]: the target's tapped states, combined
  Tensor logits_;       // F32 [max_num_seqs * num_drafts, vocab_size]
  Tensor transitions_;  // F32 [max_num_seqs, vocab_size]; empty if the model has none
  Buffer target_ids_;   // TapReader::target_ids(); empty if the vocabularies are the same
};

Status BlockDrafter::allocate(CudaStream& stream) {
  const ModelConfig& config = model().config();
  const ModelLimits& limits = parts_.limits;
  const DraftLimits input_limits = {.step = draft_step_limits(parts_, limits_.max_num_seqs),
                                    .num_passes = 1,
                                    .q_len = block_len()};
  QUIRE_ASSIGN_OR_RETURN(inputs_, DraftInputs::create(input_limits, stream));
  QUIRE_ASSIGN_OR_RETURN(
      states_, ops_.allocate({limits.max_num_tokens, config.hidden_size}, ops_.activation_dtype()));
  QUIRE_ASSIGN_OR_RETURN(
      logits_, ops_.allocate({limits.max_num_logit_rows, config.vocab_size}, DType::kF32));
  if (head_.has_transitions()) {
    QUIRE_ASSIGN_OR_RETURN(transitions_,
                           ops_.allocate({limits_.max_num_seqs, config.vocab_size}, DType::kF32));
  }
  QUIRE_ASSIGN_OR_RETURN(target_ids_, upload_target_ids(head_, stream));
  return {};
}

Status BlockDrafter::prepare_read(const CudaDraftCall& call, CudaStream& stream) {
  inputs_.arrays().num_computed = call.num_computed;
  inputs_.arrays().next_tokens = call.next_tokens;
  QUIRE_ASSIGN_OR_RETURN(context_step_,
                         context_attention_.without_plans(call.step->batches, stream));
  return {};
}

Status BlockDrafter::prepare_proposal(const CudaDraftCall& call, CudaStream& stream) {
  if (call.num_drafts == 0) return {};
  const DraftStep& step = *call.step;
  inputs_.describe(step);
  QUIRE_ASSIGN_OR_RETURN(block_step_,
                         block_attention_.plan(inputs_.batches(), step.graph != nullptr, stream));
  return {};
}

Status BlockDrafter::read_step(const CudaDraftCall& call, CudaStream& /*stream*/) {
  const DraftStep& step = *call.step;
  const TensorView states = states_.view.rows(0, step.num_tokens);
  head_.combine(parts_.target->taps().rows(0, step.num_tokens), states);
  return head_.write_context({.num_tokens = step.num_tokens,
                              .positions = step.arrays->positions,
                              .kv_groups = context_step_,
                              .hidden = states});
}

Status BlockDrafter::propose(const CudaDraftCall& call, CudaStream& stream) {
  if (call.num_drafts == 0) return {};
  QUIRE_RETURN_IF_ERROR(compute_blocks(call, stream));
  for (int i = 0; i < call.num_drafts; ++i) choose(call, i, stream);
  return {};
}

Status BlockDrafter::compute_blocks(const CudaDraftCall& call, CudaStream& stream) {
  const DraftArrays& arrays = inputs_.arrays();
  launch_block_pass(*call.step->arrays, arrays,
                    {.mask_token_id = layout().mask_token_id,
                     .num_before_drafts = layout().num_before_drafts(),
                     .num_drafts = call.num_drafts},
                    call.num_spans, stream);
  QUIRE_RETURN_IF_ERROR(model().forward({.num_tokens = call.num_spans * block_len(),
                                         .token_ids = arrays.token_ids,
                                         .positions = arrays.positions,
                                         .kv_groups = block_step_}));
  const int num_rows = call.num_drafts * call.num_spans;
  return model().compute_logits(arrays.logit_tokens, num_rows, logits_.view.rows(0, num_rows));
}

void BlockDrafter::choose(const CudaDraftCall& call, int draft_idx, CudaStream& stream) {
  const int num_spans = call.num_spans;
  const TensorView logits = logits_.view.rows(int64_t{draft_idx} * num_spans, num_spans);
  if (head_.has_transitions()) {
    const DraftArrays& arrays = inputs_.arrays();
    const TensorView summands = transitions_.view.rows(0, num_spans);
    launch_previous_tokens(*call.step->arrays, arrays, draft_idx, num_spans, stream);
    head_.transitions(arrays.previous_tokens, num_spans, summands);
    launch_add(logits.as<float>(), summands.as<float>(), logits.shape.num_elements(), stream);
  }
  call.step->sampler->choose_drafts({.logits = logits.as<float>(),
                                     .width = static_cast<int>(logits.shape[1]),
                                     .slots = call.slots,
                                     .num_spans = num_spans,
                                     .draft_idx = draft_idx,
                                     .target_ids = static_cast<const int32_t*>(target_ids_.data())},
                                    stream);
}

}  // namespace

Result<std::shared_ptr<CudaDrafter>> make_block_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits, CudaOps& ops,
                                                        CudaStream& stream) {
  auto drafter = std::make_shared<BlockDrafter>(parts, limits, ops);
  QUIRE_RETURN_IF_ERROR(drafter->allocate(stream));
  return std::shared_ptr<CudaDrafter>(std::move(drafter));
}

}  // namespace quire::cuda
