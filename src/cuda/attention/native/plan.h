// Chooses the kernel, the number of splits and the size of the workspace from a range's shape,
// never from live lengths. Pure host functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attn/backend.h"

namespace quire::cuda::native {

enum class KernelKind {
  kRows16,   // up to 16 packed rows per request and KV head; each warp has its own positions
  kTile,     // tiles of 64 packed rows; all warps share the positions
  kGeneric,  // no tensor cores: F32, mixed dtypes, memory without 16-byte alignment
};

struct KernelChoice {
  KernelKind kind = KernelKind::kGeneric;
  int padded_dim = 0;  // 64, 128 or 256; unused by kGeneric
  int num_splits = 1;
};

inline constexpr int kTileRows = 64;
inline constexpr int kMaxSplits = 64;
inline constexpr int kMinSplitTokens = 64;

// Whether the tensor-core kernels support these dtypes.
bool has_mma(const AttentionShape& shape);
// Whether the call's memory can be copied in units of 16 bytes.
bool is_aligned(const AttentionShape& shape, const AttentionCall& call);

KernelChoice choose_kernel(const AttentionShape& shape, Phase phase, const PhaseRange& range,
                           bool aligned, int num_sms);

// Bytes of the partial results of num_tokens tokens.
size_t partial_bytes(const AttentionShape& shape, int64_t num_tokens, int num_splits);
// The largest partial_bytes of any batch within the limits.
size_t max_partial_bytes(const AttentionShape& shape, const PlanLimits& limits, int num_sms);

}  // namespace quire::cuda::native
