// Chooses the experts of a token.
#pragma once

#include <cstdint>

#include "ops/expert_ops.h"

namespace quire::cpu {

// ExpertOps::route for one token. logits: [num_experts]; bias: [num_experts] or null; ids and
// weights: [num_per_token()].
void route_row(const ExpertRouting& routing, const float* logits, const float* bias, int32_t* ids,
               float* weights);

}  // namespace quire::cpu
