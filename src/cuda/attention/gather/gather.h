// Prefill kernels are faster if they read keys and values without a block table. Before such a
// kernel runs, launch_gather() copies (gathers) the contexts of a phase from their pages to
// contiguous scratch memory in the workspace. Each request's positions fill whole tiles of the
// scratch memory, so that no tile has positions of two requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "base/numbers.h"
#include "cuda/base/stream.h"

namespace quire::cuda {

// Positions that a thread block of the copy kernel handles. The tiles of readers are multiples of
// this.
inline constexpr int kGatherTile = 128;

// Bytes of a token's gathered keys and values.
inline int64_t gathered_token_bytes(const AttentionShape& shape) {
  return 2 * int64_t{shape.num_kv_heads} * shape.head_dim *
         static_cast<int64_t>(dtype_bytes(shape.q));
}

// Bytes of scratch memory for this many tokens: their keys, and then as many bytes of values.
inline size_t scratch_bytes(const AttentionShape& shape, int64_t num_tokens) {
  return static_cast<size_t>(num_tokens * gathered_token_bytes(shape));
}

// Query tokens of a request of the batch.
inline int32_t q_len_of(const AttentionBatch& batch, int req) {
  return batch.query_start.host[req + 1] - batch.query_start.host[req];
}

// The number of positions that a request takes in the scratch memory; 0 if it has no query tokens.
constexpr int64_t gathered_tokens(int q_len, int kv_len, int tile) {
  return q_len > 0 ? round_up(int64_t{kv_len}, tile) : 0;
}

// Replaces the contents of `tokens` by gathered_tokens() of each request of the range, computed
// from upper bounds of the lengths.
inline void list_gathered_tokens(const AttentionBatch& batch, const PhaseRange& range, int tile,
                                 std::vector<int64_t>& tokens) {
  tokens.clear();
  for (int req = range.first_req; req < range.first_req + range.num_reqs; ++req) {
    tokens.push_back(
        gathered_tokens(q_len_of(batch, req), batch.kv_len_bound[static_cast<size_t>(req)], tile));
  }
}

// The capacity of the scratch memory in tokens, a multiple of `tile`: the longest context or a
// whole step of new prompts, whichever is larger, within kMaxScratchBytes. If the contexts of a
// phase exceed it together, groups of requests are processed one after another.
inline constexpr int64_t kMaxScratchBytes = int64_t{256} << 20;
inline int scratch_tokens(const AttentionShape& shape, const PlanLimits& largest, int tile) {
  const int64_t longest = round_up(int64_t{largest.max_kv_len}, tile);
  const int64_t step = round_up(int64_t{largest.max_num_tokens}, tile);
  const int64_t wanted = std::min(std::max(longest, step), longest * largest.max_num_reqs);
  return static_cast<int>(
      std::min(wanted, kMaxScratchBytes / gathered_token_bytes(shape) / tile * tile));
}

// Consecutive requests of a phase that are gathered together.
struct GatherGroup {
  int first_req = 0;  // within the phase
  int num_reqs = 0;
  int num_tokens = 0;  // of the scratch

  friend bool operator==(const GatherGroup&, const GatherGroup&) = default;
};

// Packs requests in order into groups that fit into the scratch memory. Every single request must
// fit. `tokens` has gathered_tokens() per request. Group is a GatherGroup, whose other members keep
// their defaults.
template <typename Group>
void pack_groups(std::span<const int64_t> tokens, int64_t scratch_tokens,
                 std::vector<Group>& groups) {
  groups.assign(1, {});
  for (size_t req = 0; req < tokens.size(); ++req) {
    if (groups.back().num_tokens + tokens[req] > scratch_tokens) {
      groups.emplace_back().first_req = static_cast<int>(req);
    }
    groups.back().num_tokens += static_cast<int>(tokens[req]);
    ++groups.back().num_reqs;
  }
}

// Arguments of the copy kernel, with device pointers. The requests are consecutive requests of one
// phase.
struct GatherCall {
  KvCacheView kv;             // strides are multiples of 8 elements
  bool apply_scales = false;  // of an FP8 cache: the copies are multiplied by k_scale and v_scale
  void* k = nullptr;          // the copies
  void* v = nullptr;
  int64_t head_stride = 0, token_stride = 0;  // of both copies, in elements
  const int32_t* seq_lens = nullptr;          // [num_reqs]
  const int32_t* block_table = nullptr;       // [num_reqs, max_pages]
  int64_t max_pages = 0;
  const int32_t* scratch_start = nullptr;  // [num_reqs], multiples of `tile`
  int num_reqs = 0;
  int num_tokens = 0;  // end of the last request's positions, a multiple of `tile`
  int tile = kGatherTile;
  int num_kv_heads = 0;
  int head_dim = 0;  // a multiple of 8 up to 256
  int page_size = 0;
};

// A plan's scratch memory: the copies of keys, then the copies of values.
struct GatherScratch {
  std::byte* memory = nullptr;      // scratch_bytes()
  int64_t num_tokens = 0;           // capacity
  const int32_t* starts = nullptr;  // device, [requests of the phase]: GatherCall::scratch_start
  int tile = kGatherTile;
  bool by_head = false;       // [heads, num_tokens, head_dim], else [num_tokens, heads, head_dim]
  bool apply_scales = false;  // GatherCall::apply_scales
};

// Returns the arguments that copy a group of the range.
GatherCall gather_call(const AttentionShape& shape, const KvCacheView& kv,
                       const AttentionBatch& batch, const PhaseRange& range,
                       const GatherGroup& group, const GatherScratch& scratch);

// Copies elements of 16 bits, and converts FP8 to BF16: exactly without scales, and rounded to
// nearest with them. The rest of the tile in which a context ends is filled with zeros. Kernels
// multiply the values after a context by weights of zero, and NaN times zero is NaN. num_tokens may
// be computed from upper bounds of the lengths; tiles beyond the true lengths are not written.
void launch_gather(const GatherCall& call, CudaStream& stream);
// Loads the kernel, which CUDA otherwise does at the first launch.
Status load_gather(DType cache, int head_dim);

}  // namespace quire::cuda
