// Drafts by lookup for runners that compute on the CPU.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "cpu/platform/host_drafter.h"

namespace quire {

// `pool` must outlive the drafter.
std::shared_ptr<HostDrafter> make_lookup_drafter(const LookupConfig& config,
                                                 const DrafterLimits& limits, ThreadPool& pool);

}  // namespace quire
