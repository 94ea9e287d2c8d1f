// The `cpu` backend: Google Highway with run-time dispatch, threads, paged K and V.
//
// A row (one query head of one token) gives the same bits whatever shares its pass, however the
// prompt is chunked, paged, split or threaded, because each of its reductions has one fixed order:
//   - scores: 16-token blocks at absolute positions; lanes over head_dim, then one fixed tree
//   - softmax: online, one update a 64-token tile at absolute positions
//   - output: tokens of a block in order, even and odd ones in two chains
//   - partitions of 512 absolute positions, each from scratch, folded in ascending order, always
// Tiles that a row does not see are not part of its computation at all.
#pragma once

#include <memory>

#include "attn/backend.h"
#include "base/thread_pool.h"

namespace quire {

// The pool outlives the backend.
std::unique_ptr<AttentionBackend> make_cpu_attention(ThreadPool& pool);

}  // namespace quire
