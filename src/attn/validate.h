// Checks that do not depend on a backend: is this shape meaningful, does this batch hold together?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/backend.h"

namespace quire {

// Every way in which the shape contradicts itself, whoever would compute it. Each reason is one
// sentence that names the field, its value and what is expected.
std::vector<std::string> shape_faults(const AttentionShape& shape);

// For tests and debug builds, on a batch whose "device" arrays the host can read: the ranges tile
// the batch (decode first), lengths are consistent, every page that a request reads exists in a
// cache of num_pages pages, and every slot that is written too. The first fault found, or ok.
Status validate_batch(const AttentionShape& shape, const AttentionBatch& batch, int64_t num_pages);

}  // namespace quire
