// Gathering: prefill kernels that read keys and values without a block table are faster. Before one
// attends, launch_gather() copies the contexts of a phase from their pages to contiguous scratch in
// the workspace. Each request's positions take whole tiles of the scratch, so that no tile has
// positions of two requests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/backend.h"
#include "base/numbers.h"
#include "cuda/base/stream.h"

namespace quire::cuda {

// Positions that a thread block of the copy takes. A reader's tiles are multiples of them.
inline constexpr int kGatherTile = 128;

// Bytes of a token's gathered keys and values.
inline int64_t gathered_token_bytes(const AttentionShape& shape) {
  return 2 * int64_t{shape.num_kv_heads} * shape.head_dim *
         static_cast<int64_t>(dtype_bytes(shape.q));
}

// The positions of the scratch that a request takes: none if it has no query tokens.
constexpr int64_t gathered_tokens(int q_len, int kv_len, int tile) {
  return q_len > 0 ? round_up(int64_t{kv_len}, tile) : 0;
}

// The tokens of a scratch for the longest context or a whole step of fresh prompts, whichever is
// more, within kMaxScratchBytes; a multiple of `tile`. A phase whose contexts exceed it together is
// attended in groups of requests.
inline constexpr int64_t kMaxScratchBytes = int64_t{256} << 20;
inline int scratch_tokens(const AttentionShape& shape, const PlanLimits& largest, int tile) {
  const int64_t longest = round_up(int64_t{largest.max_kv_len}, tile);
  const int64_t step = round_up(int64_t{largest.max_num_tokens}, tile);
  const int64_t wanted = std::min(std::max(longest, step), longest * largest.max_num_reqs);
  return static_cast<int>(
      std::min(wanted, kMaxScratchBytes / gathered_token_bytes(shape) / tile * tile));
}

// Packs requests in order into groups that fit into the scratch, as every single request does.
// `tokens` has gathered_tokens() per request. Sets first_req, num_reqs and num_tokens of each
// group.
template <typename Group>
void pack_groups(std::span<const int64_t> tokens, int64_t scratch_tokens,
                 std::vector<Group>& groups) {
  groups.assign(1, {});
  for (size_t req = 0; req < tokens.size(); ++req) {
    if (groups.back().num_tokens + tokens[req] > scratch_tokens) {
      groups.push_back({.first_req = static_cast<int>(req)});
    }
    groups.back().num_tokens += static_cast<int>(tokens[req]);
    ++groups.back().num_reqs;
  }
}

// Arguments of the copy, with device pointers. Requests are consecutive ones of one phase.
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

// Copies elements of 16 bits, and converts FP8 to BF16: exactly without scales, and rounded to
// nearest with them. The tile in which a context ends is filled up with zeros, because kernels
// multiply the values behind a context by weights of zero, and a NaN there would remain one.
// num_tokens may follow upper bounds of the lengths; tiles behind the true ones are not written.
void launch_gather(const GatherCall& call, CudaStream& stream);
// Loads the kernel, which CUDA otherwise does at the first launch.
Status load_gather(DType cache, int head_dim);

}  // namespace quire::cuda
