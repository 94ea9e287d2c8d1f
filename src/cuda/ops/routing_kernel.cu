// Chooses each token's experts, with one thread block of one warp per token. Lane l holds experts
// l, l + 32, and so on. Scores are compared as unsigned keys of the same order, so that one
// instruction finds the largest key of a warp. Among equal keys, the expert with the lower index
// wins.
#include "base/numbers.h"
#include "cuda/base/launch.h"
#include "cuda/device/elements.cuh"
#include "cuda/device/hopper.cuh"
#include "cuda/ops/op_kernels.h"

namespace quire::cuda {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFU;
constexpr int kLanes = 32;
constexpr uint32_t kTakenKey = 0;          // below the keys of all numbers
constexpr uint32_t kLowestKey = 0x7FFFFF;  // the key of minus infinity

// The keys have the order of the numbers; NaN counts as minus infinity.
__device__ __forceinline__ uint32_t key_of(float number) {
  if (isnan(number)) return kLowestKey;
  const uint32_t bits = __float_as_uint(number);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    x = fmaxf(x, __shfl_xor_sync(kAllLanes, x, distance));
  }
  return x;
}

// Numbers from which the largest are taken one after another. keys[i] has the key of number i * 32
// + lane.
template <int kPerLane>
struct Candidates {
  uint32_t keys[kPerLane];

  // Returns the index of the largest remaining number, and removes it. All lanes call this.
  __device__ __forceinline__ int take_best(int lane) {
    uint32_t best = kTakenKey;
    int idx = 0;
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (keys[i] <= best) continue;
      best = keys[i];
      idx = i * kLanes + lane;
    }
    const uint32_t largest = __reduce_max_sync(kAllLanes, best);
    constexpr unsigned kNotMine = 0xFFFFFFFFU;
    const auto winner = static_cast<int>(
        __reduce_min_sync(kAllLanes, best == largest ? static_cast<unsigned>(idx) : kNotMine));
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (i * kLanes + lane == winner) keys[i] = kTakenKey;
    }
    return winner;
  }
};

// Replaces logits by scores.
template <int kPerLane>
__device__ __forceinline__ void score(RouterScores rule, int num_experts, int lane,
                                      float (&logits)[kPerLane]) {
  if (rule == RouterScores::kSigmoid) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) logits[i] = 1.0F / (1.0F + expf(-logits[i]));
    return;
  }
  float largest = -INFINITY;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if (i * kLanes + lane < num_experts) largest = fmaxf(largest, logits[i]);
  }
  largest = warp_max(largest);
  float sum = 0.0F;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    logits[i] = expf(logits[i] - largest);
    if (i * kLanes + lane < num_experts) sum += logits[i];
  }
  sum = warp_sum(sum);
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) logits[i] /= sum;
}

__device__ __forceinline__ float group_score(GroupScores rule, const float* choices, int size) {
  float first = -INFINITY;
  float second = -INFINITY;
  for (int i = 0; i < size; ++i) {
    second = fmaxf(second, fminf(first, choices[i]));
    first = fmaxf(first, choices[i]);
  }
  return rule == GroupScores::kLargest ? first : first + second;
}

// Excludes the experts outside the best groups.
template <int kPerLane>
__device__ __forceinline__ void exclude_other_groups(const ExpertRouting& routing, int lane,
                                                     const float (&choices)[kPerLane],
                                                     Candidates<kPerLane>& experts) {
  __shared__ float of_experts[kPerLane * kLanes];
  __shared__ bool is_best[kPerLane * kLanes];  // per group
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    // NaN counts as minus infinity, so that no group's score is NaN.
    of_experts[i * kLanes + lane] = isnan(choices[i]) ? -INFINITY : choices[i];
    is_best[i * kLanes + lane] = false;
  }
  __syncwarp();
  const int size = routing.num_experts / routing.num_groups;
  Candidates<kPerLane> groups;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int group = i * kLanes + lane;
    groups.keys[i] =
        group < routing.num_groups
            ? key_of(group_score(routing.group_scores, of_experts + group * size, size))
            : kTakenKey;
  }
  for (int i = 0; i < routing.top_groups; ++i) {
    const int group = groups.take_best(lane);
    if (lane == 0) is_best[group] = true;
  }
  __syncwarp();
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int expert = i * kLanes + lane;
    if (expert < routing.num_experts && !is_best[expert / size]) experts.keys[i] = kTakenKey;
  }
}

// Returns the score of `expert` to all lanes.
template <int kPerLane>
__device__ __forceinline__ float score_of(int expert, const float (&scores)[kPerLane]) {
  float mine = 0.0F;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if (i == expert / kLanes) mine = scores[i];
  }
  return __shfl_sync(kAllLanes, mine, expert % kLanes);
}

template <int kPerLane>
__global__ void __launch_bounds__(kLanes)
    route_kernel(ExpertRouting routing, const float* logits, const float* bias, int32_t* ids,
                 float* weights) {
  __shared__ float chosen[kPerLane * kLanes];
  const int lane = static_cast<int>(threadIdx.x);
  trigger_dependent_launch();
  wait_for_previous_kernel();
  logits += int64_t{blockIdx.x} * routing.num_experts;
  ids += int64_t{blockIdx.x} * routing.num_per_token();
  weights += int64_t{blockIdx.x} * routing.num_per_token();
  float scores[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int expert = i * kLanes + lane;
    scores[i] = expert < routing.num_experts ? logits[expert] : -INFINITY;
  }
  score(routing.scores, routing.num_experts, lane, scores);
  float choices[kPerLane];
  Candidates<kPerLane> experts;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const int expert = i * kLanes + lane;
    const bool exists = expert < routing.num_experts;
    choices[i] = scores[i] + (bias != nullptr && exists ? bias[expert] : 0.0F);
    experts.keys[i] = exists ? key_of(choices[i]) : kTakenKey;
  }
  if (routing.top_groups < routing.num_groups) {
    exclude_other_groups(routing, lane, choices, experts);
  }
  float sum = kRoutingSumAddend;
  for (int j = 0; j < routing.top_k; ++j) {
    const int expert = experts.take_best(lane);
    const float of_expert = score_of(expert, scores);
    sum += of_expert;
    if (lane == 0) {
      ids[j] = expert;
      chosen[j] = of_expert;
    }
  }
  __syncwarp();
  for (int j = lane; j < routing.top_k; j += kLanes) {
    const float weight = (routing.renormalize ? chosen[j] / sum : chosen[j]) * routing.scale;
    weights[j] = routing.expert_scales == nullptr ? weight : weight * routing.expert_scales[ids[j]];
  }
  for (int i = lane; i < routing.num_shared; i += kLanes) {
    ids[routing.top_k + i] = routing.num_experts + i;
    weights[routing.top_k + i] = 1.0F;
  }
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
