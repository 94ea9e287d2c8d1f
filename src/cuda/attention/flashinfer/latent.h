// The part of the backend that serves latent caches (multi-head latent attention), on Hopper, in
// both phases. Prefill has no kernel of its own: its queries are absorbed, as those of decode.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "cuda/base/device_info.h"

namespace quire::cuda::flashinfer_backend {

Support supports_latent(const AttentionShape& shape, const Device& device);
Result<std::unique_ptr<AttentionPlan>> make_latent_plan(const AttentionShape& shape,
                                                        const PlanLimits& limits,
                                                        const DeviceInfo& info);

}  // namespace quire::cuda::flashinfer_backend
