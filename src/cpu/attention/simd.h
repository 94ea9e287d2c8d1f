// The `cpu` backend: Google Highway with run-time dispatch, threads, paged K and V.
//
// The bits of a row (one query head of one token) do not depend on the rest of the batch, nor on
// how the prompt is chunked, paged, split or threaded, because each reduction has one fixed order:
//   - scores: 16-token blocks at absolute positions; lanes over head_dim, then a fixed tree
//   - softmax: online, one update per 64-token tile at absolute positions
//   - output: tokens of a block in order; even and odd tokens form two chains
//   - partitions of 512 absolute positions, each computed from scratch, always merged in ascending
//   order
// Tiles without a visible position are skipped.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "base/thread_pool.h"

namespace quire {

// The pool must outlive the backend.
std::unique_ptr<AttentionBackend> make_cpu_attention(ThreadPool& pool);

}  // namespace quire
