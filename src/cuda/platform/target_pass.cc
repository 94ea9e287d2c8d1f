#include "cuda/platform/target_pass.h"

#include "cuda/platform/runner_bytes.h"

namespace quire::cuda {

Status TargetPass::allocate() {
  const RunnerSizes& sizes = parts.sizes;
  QUIRE_ASSIGN_OR_RETURN(buffers, StepBuffers::create(step_limits(sizes), stream));
  const int width = embeds() ? model().config().hidden_size : sizes.vocab_size;
  QUIRE_ASSIGN_OR_RETURN(outputs, ops.allocate({sizes.limits.max_num_logit_rows, width},
                                               embeds() ? ops.activation_dtype() : DType::kF32));
  DeviceSamplerLimits sampling = sampler_limits(sizes);
  sampling.verification = parts.verification;
  QUIRE_ASSIGN_OR_RETURN(sampler, DeviceSampler::create(sampling, stream));
  buffers.arrays().num_computed = sampler->num_computed();
  buffers.arrays().next_tokens = sampler->next_tokens();
  return {};
}

Status TargetPass::run_layers(int num_tokens, std::span<const KvGroupStep> steps) {
  const StepArrays& arrays = buffers.arrays();
  return model().forward({.num_tokens = num_tokens,
                          .token_ids = arrays.token_ids,
                          .positions = arrays.positions,
                          .kv_groups = steps,
                          .states = parts.instance.states(inputs.batches())});
}

Status TargetPass::compute_outputs(int num_rows) {
  if (num_rows == 0) return {};
  const int32_t* tokens = buffers.arrays().logit_tokens;
  if (divides_logits()) return model().compute_logits_part(tokens, num_rows);
  return embeds() ? model().hidden_states(tokens, num_rows, output_rows(num_rows))
                  : model().compute_logits(tokens, num_rows, output_rows(num_rows));
}

void TargetPass::sample(const SamplePlan& plan) {
  const StepArrays& arrays = buffers.arrays();
  const int num_rows = plan.num_rows();
  if (divides_logits() && plan.chooses_from_parts()) {
    const auto [logits, first_id] = model().logits_part(num_rows);
    sampler->find_best(plan, logits, first_id, arrays.sample_slots, arrays.sample_offsets, stream);
    ops.collectives()->all_gather_parts(sampler->best_of_ranks(num_rows));
    return sampler->sample_best(plan, arrays.sample_slots, arrays.sample_offsets, stream);
  }
  if (divides_logits()) model().gather_logits(num_rows, output_rows(num_rows));
  sampler->sample(plan, output_rows(num_rows), arrays.sample_slots, arrays.sample_offsets, stream);
}

DraftStep TargetPass::draft_step(const GraphBatch* graph, int num_tokens) {
  return {.arrays = &buffers.arrays(),
          .batches = inputs.batches(),
          .num_tokens = num_tokens,
          .graph = parts.sizes.enforce_eager ? nullptr : graph,
          .sampler = sampler.get()};
}

}  // namespace quire::cuda
