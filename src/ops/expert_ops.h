// The operations of mixture-of-experts layers, an optional part of a device (Ops::experts).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire {

// The sizes of one layer of experts.
struct ExpertsShape {
  int num_experts = 0;
  int top_k = 0;  // experts per token
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;  // of each expert, on this rank
  int num_shared = 0;             // experts that every token has; included in num_experts and top_k
};

// The gated MLPs of one layer, all of one shape, in the device's own layout. A token passes through
// some of them, which its router selects.
class Experts {
 public:
  virtual ~Experts() = default;
  virtual const ExpertsShape& shape() const = 0;
  virtual size_t num_bytes() const = 0;
};

// A router's score of an expert, from the logits of all experts.
enum class RouterScores {
  kSoftmax,
  kSigmoid,
};

// The rule by which the scores of a group's experts, bias included, become the group's score.
enum class GroupScores {
  kLargest,     // of the group's experts
  kTwoLargest,  // the sum of the group's two largest
};

// Upper bound of ExpertRouting::num_experts.
inline constexpr int kMaxExperts = 1024;
// Keeps the weights finite if all scores of a token underflow.
inline constexpr float kRoutingSumAddend = 1e-20F;

// The rule by which the logits of a router become the experts of a token and their weights.
struct ExpertRouting {
  int num_experts = 0;
  int top_k = 0;  // experts per token
  RouterScores scores = RouterScores::kSoftmax;
  // Experts are divided into this many groups of adjacent ones, and a token's experts come from its
  // `top_groups` best groups. One group: no limit.
  int num_groups = 1;
  int top_groups = 1;
  GroupScores group_scores = GroupScores::kLargest;
  bool renormalize = false;  // divides a token's weights by their sum
  float scale = 1.0F;        // multiplies the weights afterwards
  // Device, [num_experts]: multiplies the weights of each expert, too. Null: none.
  const float* expert_scales = nullptr;
  // Experts that every token has, with weight 1. Their ids follow those of the num_experts others,
  // among which the router chooses.
  int num_shared = 0;

  constexpr int num_per_token() const { return top_k + num_shared; }
};

// Whether every token can get top_k experts, and every group has the experts that its score needs.
constexpr bool is_valid(const ExpertRouting& routing) {
  if (routing.num_experts < 1 || routing.num_experts > kMaxExperts || routing.num_shared < 0 ||
      routing.num_shared > kMaxExperts - routing.num_experts || routing.num_groups < 1 ||
      routing.num_experts % routing.num_groups != 0) {
    return false;
  }
  const int group_size = routing.num_experts / routing.num_groups;
  const bool has_scores =
      routing.num_groups == 1 || routing.group_scores == GroupScores::kLargest || group_size > 1;
  return has_scores && routing.top_groups >= 1 && routing.top_groups <= routing.num_groups &&
         routing.top_k >= 1 && routing.top_k <= routing.top_groups * group_size;
}

// Arguments of ExpertOps::run_experts. Only the device has the number of tokens per expert.
struct ExpertsCall {
  const Experts* experts = nullptr;
  Activation activation = Activation::kSilu;
  TensorView x;        // [num_tokens, hidden_size]
  TensorView ids;      // I32 [num_tokens, top_k of the experts' shape], as route() writes them
  TensorView weights;  // F32, as ids
  TensorView out;      // [num_tokens, hidden_size]
  bool adds = false;   // to `out`; otherwise `out` is overwritten
  // At least workspace_bytes() for num_tokens; undefined afterwards.
  std::span<std::byte> workspace;
};

// Works in the stream of the Ops that it is a part of.
class ExpertOps {
 public:
  virtual ~ExpertOps() = default;

  // The bytes of ExpertsCall::workspace for steps of up to max_num_tokens.
  virtual int64_t workspace_bytes(const ExpertsShape& shape, int64_t max_num_tokens) const = 0;
  // Selects the experts of each token. logits: F32 [num_tokens, num_experts]. `bias` [num_experts]
  // is added to the scores for the choice alone; null: none. Writes per token the top_k ids with
  // the largest scores in descending order (the lower id first among equal scores), and their
  // weights:
  //            expert_scales[id]
  // and after them the shared experts. ids: I32, weights: F32 [num_tokens, num_per_token()]. A NaN
  // counts as the smallest score, so the ids are distinct and in range for any logits. The weight
  // of a NaN is NaN.
  virtual void route(const ExpertRouting& routing, TensorView logits, const float* bias,
                     TensorView ids, TensorView weights) = 0;
  // out[t, :] = sum over j of weights[t, j] * down(gated_mul(gate_up(x[t, :]))) of expert ids[t,
  // j]. On a CPU the sum is in the order of the experts, and the bits of row t do not depend on the
  // number of rows.
  virtual void run_experts(const ExpertsCall& call) = 0;
};

}  // namespace quire
