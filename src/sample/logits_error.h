// The errors when no token can be chosen from a position's logits, with the same text on every
// device.
#pragma once

#include <cstdint>

#include "quire/status.h"

namespace quire {

Status nan_logit(int64_t position, int64_t token_id);
Status infinite_logit(int64_t position);
// Every logit is -infinity: in the model's output, or after the request's rules were applied.
Status no_finite_logit(int64_t position);
Status no_token_allowed(int64_t position);

}  // namespace quire
