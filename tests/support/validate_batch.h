// Checks that a batch is consistent.
#pragma once

#include <cstdint>

#include "attn/backend.h"

namespace quire::testing {

// For a batch whose "device" arrays are readable by the host. Checks that the ranges tile the batch
// (decode first), that lengths are consistent, and that every page read and every KV slot written
// is in a cache of num_pages pages. Returns the first error found, or ok.
Status validate_batch(const AttentionShape& shape, const AttentionBatch& batch, int64_t num_pages);

}  // namespace quire::testing
