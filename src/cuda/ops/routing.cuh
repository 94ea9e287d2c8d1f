// The choice of a token's experts by one warp, from the logits of a router. Lane l holds experts
// l, l + 32, and so on. Scores are compared as unsigned keys of the same order, so that one
// instruction finds the largest key of a warp. Among equal keys, the expert with the lower index
// wins.
#pragma once

#include <cstdint>

#include "cuda/device/elements.cuh"
#include "ops/expert_ops.h"

namespace quire::cuda::routing {

inline constexpr unsigned kAllLanes = 0xFFFFFFFFU;
inline constexpr int kLanes = 32;
inline constexpr uint32_t kTakenKey = 0;          // below the keys of all numbers
inline constexpr uint32_t kLowestKey = 0x7FFFFF;  // the key of minus infinity

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

// The scores of a token's experts, and the keys by which they are chosen, of one warp.
template <int kPerLane>
struct TokenScores {
  float scores[kPerLane];
  Candidates<kPerLane> experts;

  __device__ __forceinline__ TokenScores(const ExpertRouting& routing, const float* logits,
                                         const float* bias, int lane) {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int expert = i * kLanes + lane;
      scores[i] = expert < routing.num_experts ? logits[expert] : -INFINITY;
    }
    score(routing.scores, routing.num_experts, lane, scores);
    float choices[kPerLane];
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
  }
};

// Writes the ids and the weights of a token, from its experts and their scores in the order of the
// choice. `sum` is the sum of these scores, in that order, after kRoutingSumAddend.
__device__ __forceinline__ void write_choice(const ExpertRouting& routing, const int32_t* experts,
                                             const float* scores, float sum, int lane, int32_t* ids,
                                             float* weights) {
  for (int j = lane; j < routing.top_k; j += kLanes) {
    const int32_t expert = experts[j];
    const float weight = (routing.renormalize ? scores[j] / sum : scores[j]) * routing.scale;
    ids[j] = expert;
    weights[j] = routing.expert_scales == nullptr ? weight : weight * routing.expert_scales[expert];
  }
  for (int i = lane; i < routing.num_shared; i += kLanes) {
    ids[routing.top_k + i] = routing.num_experts + i;
    weights[routing.top_k + i] = 1.0F;
  }
}

// Chooses the experts of one token (ExpertOps::route). All lanes of a warp call this; at most one
// warp of a thread block does.
template <int kPerLane>
__device__ __forceinline__ void choose_experts(const ExpertRouting& routing, const float* logits,
                                               const float* bias, int32_t* ids, float* weights) {
  __shared__ float chosen[kPerLane * kLanes];
  __shared__ int32_t chosen_ids[kPerLane * kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  TokenScores<kPerLane> token(routing, logits, bias, lane);
  float sum = kRoutingSumAddend;
  for (int j = 0; j < routing.top_k; ++j) {
    const int expert = token.experts.take_best(lane);
    const float of_expert = score_of(expert, token.scores);
    sum += of_expert;
    if (lane == 0) {
      chosen_ids[j] = expert;
      chosen[j] = of_expert;
    }
  }
  __syncwarp();
  write_choice(routing, chosen_ids, chosen, sum, lane, ids, weights);
}

// Like choose_experts(), with a thread block of kThreads. The first warp computes the scores. Then
// several threads count the experts that come before one expert, which is its place. For few
// experts per lane this is faster than to take them one after another.
template <int kPerLane, int kThreads>
__device__ __forceinline__ void rank_experts(const ExpertRouting& routing, const float* logits,
                                             const float* bias, int32_t* ids, float* weights) {
  constexpr int kExperts = kPerLane * kLanes;
  constexpr int kParts = kThreads / kExperts < 8 ? kThreads / kExperts : 8;  // threads per expert
  constexpr int kSteps = kExperts / (4 * kParts);
  __shared__ uint4 keys[kExperts / 4];
  __shared__ float scores[kExperts];
  __shared__ float chosen[kExperts];
  __shared__ int32_t chosen_ids[kExperts];
  const int thread = static_cast<int>(threadIdx.x);
  auto* const key_of_expert = reinterpret_cast<uint32_t*>(keys);
  if (thread < kLanes) {
    const TokenScores<kPerLane> token(routing, logits, bias, thread);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      key_of_expert[i * kLanes + thread] = token.experts.keys[i];
      scores[i * kLanes + thread] = token.scores[i];
    }
  }
  __syncthreads();
  const int expert = thread / kParts;
  if (expert < kExperts) {
    const uint32_t key = key_of_expert[expert];
    int place = 0;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const int vector = step * kParts + thread % kParts;
      const uint4 words = keys[vector];
      const uint32_t others[] = {words.x, words.y, words.z, words.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool wins_ties = vector * 4 + i < expert;
        place += others[i] > key || (wins_ties && others[i] == key) ? 1 : 0;
      }
    }
#pragma unroll
    for (int distance = kParts / 2; distance > 0; distance /= 2) {
      place += __shfl_xor_sync(kAllLanes, place, distance);
    }
    if (thread % kParts == 0 && key != kTakenKey && place < routing.top_k) {
      chosen_ids[place] = expert;
      chosen[place] = scores[expert];
    }
  }
  __syncthreads();
  if (thread >= kLanes) return;
  float sum = kRoutingSumAddend;
  for (int j = 0; j < routing.top_k; ++j) sum += chosen[j];
  write_choice(routing, chosen_ids, chosen, sum, thread, ids, weights);
}

}  // namespace quire::cuda::routing
