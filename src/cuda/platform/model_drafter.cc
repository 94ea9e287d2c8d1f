#include "cuda/platform/model_drafter.h"

#include <fmt/format.h>

#include <utility>

#include "cuda/base/memory.h"
#include "cuda/platform/block_drafter.h"
#include "cuda/platform/draft_attention.h"
#include "cuda/sample/device_sampler.h"
#include "cuda/step/draft_inputs.h"

namespace quire::cuda {
namespace {

// Enqueues the same work for every step of one batch shape, so that a graph can replace it: one
// pass over the tokens of the target's step, rejected drafts included, then one pass per further
// draft. A head that reads the target's cache has one pass per draft, and nothing to read.
class ModelDrafter final : public CudaDrafter {
 public:
  ModelDrafter(const DraftModelParts& parts, const DrafterLimits& limits, CudaOps& ops)
      : parts_(parts),
        head_(parts.instance.model->draft_head()),
        reads_target_cache_(head_ != nullptr && head_->reads_target_cache()),
        num_drafts_(limits.num_drafts),
        ops_(ops) {}

  Status allocate(const DrafterLimits& limits, CudaStream& stream);

  // The device has all that a slot needs: the pages of its tokens, and its newest token.
  Status update_slots(const BatchPlan& /*plan*/, CudaStream& /*stream*/) override { return {}; }
  Status prepare_read(const CudaDraftCall& call, CudaStream& stream) override;
  Status prepare_proposal(const CudaDraftCall& call, CudaStream& stream) override;
  Status read_step(const CudaDraftCall& call, CudaStream& stream) override;
  Status propose(const CudaDraftCall& call, CudaStream& stream) override;
  bool has_graphs() const override { return true; }

 private:
  Model& model() const { return *parts_.instance.model; }
  // A head drafts the first token in the first pass. An ordinary model has not read the newest
  // token by then.
  int num_ahead() const { return head_ == nullptr || reads_target_cache_ ? 0 : 1; }
  int num_passes() const { return num_drafts_ - num_ahead(); }
  TensorView states(int64_t num_rows) const { return states_.view.rows(0, num_rows); }

  // Whether read_step() only writes the keys and values that later proposals read. A head can do
  // that in less time, because no draft follows from its output.
  bool writes_context(const CudaDraftCall& call) const {
    return head_ != nullptr && call.num_drafts == 0;
  }

  // Writes the hidden states that pass `pass_idx` reads: the target's, of the last token that it
  // kept, or those of the pass before.
  Status read_states(const CudaDraftCall& call, int pass_idx);
  // Runs the model on the newest token or draft of each sequence. Its logits give draft pass_idx +
  // num_ahead().
  Status run_pass(const CudaDraftCall& call, int pass_idx, CudaStream& stream);
  // Chooses one draft per sequence from the logits of the last pass. rows: device, [num_spans], the
  // sequences' rows of that pass.
  Status choose(const CudaDraftCall& call, const int32_t* rows, int draft_idx, CudaStream& stream);

  DraftModelParts parts_;
  DraftHead* head_;          // of the model; null: an ordinary model
  bool reads_target_cache_;  // DraftHead::reads_target_cache()
  int num_drafts_;
  CudaOps& ops_;
  DraftInputs inputs_;
  DraftAttention first_attention_{parts_};
  DraftAttention pass_attention_{parts_};
  // The attention of the step that was prepared.
  std::span<const KvGroupStep> first_step_, pass_step_;
  Tensor logits_;      // F32 [max_num_seqs, vocab_size]
  Tensor states_;      // [max_num_tokens, TapReader::state_width()]; heads only
  Buffer target_ids_;  // TapReader::target_ids(); empty if the vocabularies are the same
};

Status ModelDrafter::allocate(const DrafterLimits& limits, CudaStream& stream) {
  const ModelConfig& config = model().config();
  const ModelLimits& model_limits = parts_.limits;
  const DraftLimits input_limits = {.step = draft_step_limits(parts_, limits.max_num_seqs),
                                    .num_ahead = num_ahead(),
                                    .num_passes = num_passes(),
                                    .reads_target_cache = reads_target_cache_};
  QUIRE_ASSIGN_OR_RETURN(inputs_, DraftInputs::create(input_limits, stream));
  QUIRE_ASSIGN_OR_RETURN(logits_,
                         ops_.allocate({limits.max_num_seqs, config.vocab_size}, DType::kF32));
  if (head_ == nullptr) return {};
  QUIRE_ASSIGN_OR_RETURN(states_, ops_.allocate({model_limits.max_num_tokens, head_->state_width()},
                                                ops_.activation_dtype()));
  QUIRE_ASSIGN_OR_RETURN(target_ids_, upload_target_ids(*head_, stream));
  return {};
}

Status ModelDrafter::prepare_read(const CudaDraftCall& call, CudaStream& stream) {
  const DraftStep& step = *call.step;
  inputs_.arrays().num_computed = call.num_computed;
  inputs_.arrays().next_tokens = call.next_tokens;
  if (reads_target_cache_) return {};
  const bool attends = !writes_context(call) || head_->context_attends();
  QUIRE_ASSIGN_OR_RETURN(
      first_step_, attends ? first_attention_.plan(step.batches, step.graph != nullptr, stream)
                           : first_attention_.without_plans(step.batches, stream));
  return {};
}

Status ModelDrafter::prepare_proposal(const CudaDraftCall& call, CudaStream& stream) {
  if (call.num_drafts <= num_ahead()) return {};  // no pass follows
  const DraftStep& step = *call.step;
  inputs_.describe(step);
  QUIRE_ASSIGN_OR_RETURN(pass_step_,
                         pass_attention_.plan(inputs_.batches(), step.graph != nullptr, stream));
  return {};
}

Status ModelDrafter::propose(const CudaDraftCall& call, CudaStream& stream) {
  if (call.num_drafts == 0) return {};
  if (num_ahead() > 0) {
    QUIRE_RETURN_IF_ERROR(choose(call, inputs_.arrays().last_rows, 0, stream));
  }
  for (int pass = 0; pass + num_ahead() < call.num_drafts; ++pass) {
    QUIRE_RETURN_IF_ERROR(run_pass(call, pass, stream));
    QUIRE_RETURN_IF_ERROR(choose(call, inputs_.arrays().query_start, pass + num_ahead(), stream));
  }
  return {};
}

Status ModelDrafter::read_step(const CudaDraftCall& call, CudaStream& stream) {
  const DraftStep& step = *call.step;
  launch_first_pass(*step.arrays, inputs_.arrays(), call.num_spans, stream);
  if (reads_target_cache_) return {};
  StepInput input = {.num_tokens = step.num_tokens,
                     .token_ids = inputs_.arrays().step_token_ids,
                     .positions = step.arrays->positions,
                     .kv_groups = first_step_};
  if (head_ != nullptr) {
    input.hidden = states(step.num_tokens);
    head_->combine(parts_.target->taps().rows(0, step.num_tokens), input.hidden);
  }
  return writes_context(call) ? head_->write_context(input) : model().forward(input);
}

Status ModelDrafter::read_states(const CudaDraftCall& call, int pass_idx) {
  const DraftArrays& arrays = inputs_.arrays();
  const TensorView out = states(call.num_spans);
  if (pass_idx > 0) return head_->output_states(arrays.query_start, call.num_spans, out);
  if (!reads_target_cache_) return head_->output_states(arrays.last_rows, call.num_spans, out);
  ops_.gather_rows(parts_.target->taps(), arrays.last_rows, out);
  head_->combine(out, out);
  return {};
}

Status ModelDrafter::run_pass(const CudaDraftCall& call, int pass_idx, CudaStream& stream) {
  const DraftArrays& arrays = inputs_.arrays();
  launch_draft_pass(*call.step->arrays, arrays, pass_idx, call.num_spans, stream);
  StepInput input = {.num_tokens = call.num_spans,
                     .token_ids = arrays.token_ids,
                     .positions = arrays.positions,
                     .kv_groups = pass_step_};
  if (head_ != nullptr) {
    QUIRE_RETURN_IF_ERROR(read_states(call, pass_idx));
    input.hidden = states(call.num_spans);
  }
  return model().forward(input);
}

Status ModelDrafter::choose(const CudaDraftCall& call, const int32_t* rows, int draft_idx,
                            CudaStream& stream) {
  const TensorView logits = logits_.view.rows(0, call.num_spans);
  QUIRE_RETURN_IF_ERROR(model().compute_logits(rows, call.num_spans, logits));
  call.step->sampler->choose_drafts({.logits = logits.as<float>(),
                                     .width = static_cast<int>(logits.shape[1]),
                                     .slots = call.slots,
                                     .num_spans = call.num_spans,
                                     .draft_idx = draft_idx,
                                     .target_ids = static_cast<const int32_t*>(target_ids_.data())},
                                    stream);
  return {};
}

}  // namespace

Result<std::shared_ptr<CudaDrafter>> make_model_drafter(const DraftModelParts& parts,
                                                        const DrafterLimits& limits, CudaOps& ops,
                                                        CudaStream& stream) {
  if (parts.instance.model->block_head() != nullptr) {
    return make_block_drafter(parts, limits, ops, stream);
  }
  if (parts.limits.max_model_len < limits.max_model_len) {
    return invalid_argument(fmt::format(
        "[cuda] `speculative_config`: the drafter's context is shorter than the model's; got {} "
        "tokens, expected at least `max_model_len`, {}; lower `max_model_len`, or use `device` cpu",
        parts.limits.max_model_len, limits.max_model_len));
  }
  auto drafter = std::make_shared<ModelDrafter>(parts, limits, ops);
  QUIRE_RETURN_IF_ERROR(drafter->allocate(limits, stream));
  return std::shared_ptr<CudaDrafter>(std::move(drafter));
}

}  // namespace quire::cuda
