// The oracle of every attention backend: fp64 inside, one query row at a time, slow and obvious.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace quire {

// Its plans need no workspace. Unlike other backends it allocates inside run().
std::unique_ptr<AttentionBackend> make_reference_attention();

}  // namespace quire
