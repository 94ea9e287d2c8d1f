// The reference for every attention backend: FP64 arithmetic, one query row at a time, slow and
// simple.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace quire {

class ThreadPool;

// Unlike other backends, it allocates inside run(), so its plans need no workspace. The pool's
// threads compute the rows; without a pool, the calling thread does, with the same bits.
std::unique_ptr<AttentionBackend> make_reference_attention(ThreadPool* pool = nullptr);

}  // namespace quire
