// The part of the backend that serves latent caches (multi-head latent attention), on Hopper, in
// both phases. The kernels of absorbed attention serve prefill too. With BF16 queries and the head
// dimensions of published models, a prefill plan also has the expanded form (attn/expansion.h).
#pragma once

#include <cstdint>
#include <memory>

#include "attn/backend.h"
#include "attn/expansion.h"
#include "cuda/base/device_info.h"

namespace quire::cuda::flashinfer_backend {

Support supports_latent(const AttentionShape& shape, const Device& device);
Result<std::unique_ptr<AttentionPlan>> make_latent_plan(const AttentionShape& shape,
                                                        const PlanLimits& limits,
                                                        const DeviceInfo& info);

// Whether prefill plans of this shape have the expanded form.
bool has_expansion(const AttentionShape& shape);
// Makes a plan with the expanded form. max_bytes limits the latents, keys and values that are
// expanded at once. With is_forced every batch is expanded, otherwise only those for which
// expansion_pays() is true.
Result<std::unique_ptr<ExpandingPlan>> make_expanding_plan(const AttentionShape& shape,
                                                           const PlanLimits& limits,
                                                           const DeviceInfo& info,
                                                           int64_t max_bytes, bool is_forced);

}  // namespace quire::cuda::flashinfer_backend
