// The decisions, from a range's shape and never from live lengths: which kernel, how many splits,
// how much workspace. Pure functions of the host.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/backend.h"

namespace quire::cuda::native {

enum class KernelKind {
  kRows16,   // up to 16 packed rows per request and KV head; each warp walks positions of its own
  kTile,     // tiles of 64 packed rows; all warps share the positions
  kGeneric,  // no tensor cores: F32, mixed dtypes, memory that 16-byte copies cannot take
};

struct KernelChoice {
  KernelKind kind = KernelKind::kGeneric;
  int padded_dim = 0;  // 64, 128 or 256; unused by kGeneric
  int num_splits = 1;
};

inline constexpr int kTileRows = 64;
inline constexpr int kMaxSplits = 64;
inline constexpr int kMinSplitTokens = 64;

// Whether tensor cores take these dtypes at all.
bool has_mma(const AttentionShape& shape);
// Whether the memory of this call can be copied in pieces of 16 bytes.
bool is_aligned(const AttentionShape& shape, const AttentionCall& call);

KernelChoice choose_kernel(const AttentionShape& shape, Phase phase, const PhaseRange& range,
                           bool aligned, int num_multiprocessors);

// Bytes that the splits of so many tokens leave behind for the merge.
size_t partial_bytes(const AttentionShape& shape, int64_t num_tokens, int num_splits);
// The largest partial_bytes of any batch within the limits.
size_t max_partial_bytes(const AttentionShape& shape, const PlanLimits& limits,
                         int num_multiprocessors);

}  // namespace quire::cuda::native
