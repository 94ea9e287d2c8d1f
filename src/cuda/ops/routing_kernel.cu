// Chooses each token's experts, with one thread block of one warp per token.
#include "cuda/base/launch.h"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/routing.cuh"

namespace quire::cuda {
namespace {

using routing::kLanes;

template <int kPerLane>
__global__ void __launch_bounds__(kLanes)
    route_kernel(ExpertRouting routing, const float* logits, const float* bias, int32_t* ids,
                 float* weights) {
  trigger_dependent_launch();
  wait_for_previous_kernel();
  const int64_t first = int64_t{blockIdx.x} * routing.num_per_token();
  routing::choose_experts<kPerLane>(routing, logits + int64_t{blockIdx.x} * routing.num_experts,
                                    bias, ids + first, weights + first);
}

template <int kPerLane>
void launch_route(const LaunchContext& context, const ExpertRouting& routing,
                  const TensorView& logits, const float* bias, const TensorView& ids,
                  const TensorView& weights) {
  QUIRE_LAUNCH(*context.stream, route_kernel<kPerLane>, context.shape(logits.shape[0], kLanes),
               routing, logits.as<const float>(), bias, ids.as<int32_t>(), weights.as<float>());
}

}  // namespace

void run_route(const LaunchContext& context, const ExpertRouting& routing, const TensorView& logits,
               const float* bias, const TensorView& ids, const TensorView& weights) {
  constexpr int kMost = kMaxExperts / kLanes;
  if (routing.num_experts <= 4 * kLanes) {
    return launch_route<4>(context, routing, logits, bias, ids, weights);
  }
  if (routing.num_experts <= 8 * kLanes) {
    return launch_route<8>(context, routing, logits, bias, ids, weights);
  }
  launch_route<kMost>(context, routing, logits, bias, ids, weights);
}

}  // namespace quire::cuda
