// Why no token can be chosen from a position's logits, in the same words wherever it is found out.
#pragma once

#include <cstdint>

#include "quire/status.h"

namespace quire {

Status nan_logit(int64_t position, int64_t token_id);
Status infinite_logit(int64_t position);
// Every logit is -infinity: of the model's own, or of what the request's rules made of them.
Status no_finite_logit(int64_t position);
Status no_token_allowed(int64_t position);

}  // namespace quire
