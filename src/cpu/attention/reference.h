// The reference for every attention backend: FP64 arithmetic, one query row at a time, slow and
// simple.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace quire {

class ThreadPool;

// Plans of this backend need no workspace. Unlike other backends, it allocates inside run(). Rows
// are computed by the pool's threads, or by the caller's without a pool, with the same bits.
std::unique_ptr<AttentionBackend> make_reference_attention(ThreadPool* pool = nullptr);

}  // namespace quire
