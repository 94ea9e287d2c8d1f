// Drafts by lookup for runners that compute on the CPU.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "platform/drafter.h"

namespace quire {

// `pool` outlives the drafter.
std::unique_ptr<Drafter> make_lookup_drafter(const LookupConfig& config,
                                             const DrafterLimits& limits, ThreadPool& pool);

}  // namespace quire
