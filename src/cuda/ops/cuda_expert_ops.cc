#include "cuda/ops/cuda_expert_ops.h"

#include "base/check.h"

namespace quire::cuda {
namespace {

void check_choice(const TensorView& ids, const TensorView& weights, int64_t num_tokens,
                  int64_t top_k) {
  const Shape expected = {num_tokens, top_k};
  QUIRE_CHECK(ids.dtype == DType::kI32 && weights.dtype == DType::kF32 && ids.shape == expected &&
                  weights.shape == expected,
              "[ops] the ids or weights of experts are not [num_tokens, top_k]");
}

}  // namespace

void CudaExpertOps::check_route(const ExpertRouting& routing, const TensorView& logits,
                                const TensorView& ids, const TensorView& weights) const {
  QUIRE_CHECK(is_valid(routing), "[ops] route: the routing is not valid");
  QUIRE_CHECK(logits.dtype == DType::kF32 && logits.shape.rank() == 2 &&
                  logits.shape[1] == routing.num_experts,
              "[ops] route: the logits are not F32 rows of one number per expert");
  check_choice(ids, weights, logits.shape[0], routing.num_per_token());
}

void CudaExpertOps::route(const ExpertRouting& routing, TensorView logits, const float* bias,
                          TensorView ids, TensorView weights) {
  check_route(routing, logits, ids, weights);
  run_route(context_, routing, logits, bias, ids, weights);
}

void CudaExpertOps::run_experts(const ExpertsCall& call) {
  const ExpertsShape& shape = call.experts->shape();
  check_.rows(call.x, shape.hidden_size);
  check_.same(call.x, call.out);
  check_choice(call.ids, call.weights, call.x.shape[0], shape.top_k);
  runner_.run(call);
}

}  // namespace quire::cuda
