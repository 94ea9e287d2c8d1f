// Does a batch hold together?
#pragma once

#include <cstdint>

#include "attn/backend.h"

namespace quire::testing {

// Of a batch whose "device" arrays the host can read: the ranges tile the batch (decode first),
// lengths are consistent, every page that a request reads exists in a cache of num_pages pages, and
// every slot that is written too. The first fault found, or ok.
Status validate_batch(const AttentionShape& shape, const AttentionBatch& batch, int64_t num_pages);

}  // namespace quire::testing
