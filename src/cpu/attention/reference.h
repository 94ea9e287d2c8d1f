// The reference for every attention backend: FP64 arithmetic, one query row at a time, slow and
// simple.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace quire {

// Plans of this backend need no workspace. Unlike other backends, it allocates inside run().
std::unique_ptr<AttentionBackend> make_reference_attention();

}  // namespace quire
