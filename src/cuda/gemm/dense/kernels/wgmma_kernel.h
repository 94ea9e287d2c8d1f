// Parameters and launch data of the kernels, shared with the host.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/base/launch.h"
#include "ops/ops.h"

namespace quire::cuda::wgmma {

inline constexpr int kWarpgroups = 2;  // consumers
inline constexpr int kBlockK = 64;     // elements of K in a stage: 128 bytes of a row
inline constexpr int kMaxStages = 12;
inline constexpr int kSharedAlignment = 1024;  // of the 128-byte swizzle

// The producer is a whole warpgroup, although one thread copies, because registers are reallocated
// between warpgroups.
inline constexpr int kThreads = (kWarpgroups + 1) * 128;

// Staging memory of a warp's output: 16 tokens of 64 columns if the rows of A are tokens, or of 16
// columns if they are weights. The padding of 16 bytes per token avoids bank conflicts.
inline constexpr int kStagedRowBytes = 64 * 2 + 16;
inline constexpr int kStagedTokenBytes = 16 * 2 + 16;
constexpr int staged_bytes(bool weights_are_a) {
  return 16 * (weights_are_a ? kStagedTokenBytes : kStagedRowBytes);
}

constexpr int stage_bytes(int weights, int tokens) {
  return (weights + tokens) * kBlockK * 2;
}

// Bytes of the ring, the staging memory, and two barriers per stage.
constexpr size_t shared_bytes(int weights, int tokens, bool weights_are_a, int num_stages) {
  return static_cast<size_t>(kSharedAlignment + num_stages * stage_bytes(weights, tokens) +
                             kWarpgroups * 4 * staged_bytes(weights_are_a) + num_stages * 16);
}

// The result of a product.
struct Output {
  void* out = nullptr;         // [num_rows, num_columns]
  const void* bias = nullptr;  // [num_columns]; null: none
  int64_t num_columns = 0;
  int num_rows = 0;
  bool out_is_f32 = false;
  bool is_f16 = false;    // the 16-bit type of bias, and of out unless that is F32; read by kernels
                          // with E4M3 operands
  bool is_gated = false;  // w's map has 8 rows of gate, then 8 of up; out = silu(gate) * up
};

struct Params : Output {
  CUtensorMap w;
  CUtensorMap x;
  int num_k_blocks = 0;
  int token_clusters = 0;  // numbers of clusters along the tokens and along the weights
  int weight_clusters = 0;
  int cluster_tokens = 1;  // thread blocks per cluster along the tokens and along the weights
  int cluster_weights = 1;
  int splits = 1;
  int num_whole_tiles = 0;  // cluster tiles without a split of K; clusters split K of the others,
                            // at most one tile per cluster
  int num_stages = 0;
  uint64_t w_policy = 0;  // cache hint for the L2
  // With E4M3 operands, whose maps have pairs of numbers as elements:
  const float* w_scales = nullptr;  // one per row of w
  const float* x_scales = nullptr;  // one per row of x
};

// Some rows of one expert, which thread blocks multiply by the expert's weights.
struct ExpertTile {
  int expert;
  int first_row;
  int end_row;
  int is_only;  // 1: all rows of the expert, so that its weights are read once; otherwise 0
};

// The rows of each expert are adjacent and are multiplied by the expert's matrix. Without tiles,
// all num_rows rows belong to expert 0. The bias has the rows of w of all experts.
struct GroupedParams : Output {
  Activation activation = Activation::kSilu;  // with is_gated; not kGelu
  CUtensorMap w;
  CUtensorMap x;
  const ExpertTile* tiles = nullptr;
  const int* num_tiles = nullptr;  // on the device
  // With E4M3 operands, whose maps have pairs of numbers as elements:
  const float* w_scales = nullptr;  // one per row of w of all experts
  const float* x_scales = nullptr;  // the scale of row i is x_scales[x_scale_rows[i]], or
                                    // x_scales[i] if x_scale_rows is null
  const int32_t* x_scale_rows = nullptr;
  // With a scale per block of K (kBlockScales), w_scales is [experts, scale_groups, num_k_blocks],
  // where a group is 1 << scale_shift rows of w. x_scales is [num_k_blocks, x_scales_width], and is
  // read up to the end of a tile.
  int scale_shift = 0;
  int scale_groups = 0;
  int x_scales_width = 0;
  int num_weight_tiles = 0;  // per expert
  int num_k_blocks = 0;
  int num_stages = 0;
};

// X(weights, tokens, weights_are_a): the members of WgmmaTile.
#define QUIRE_WGMMA_TILES(X) \
  X(128, 32, true)           \
  X(128, 192, true)          \
  X(96, 128, false)          \
  X(128, 128, false)         \
  X(192, 128, false)         \
  X(224, 128, false)         \
  X(256, 128, false)

// X(tokens): the tiles of E4M3 operands, which have kFp8Weights rows of w, and w as A. Up to the
// largest tile, a product is one tile, which takes the time of reading w, so there are few small
// tiles. More tokens are several tiles, which take the time of the products, so large tiles fit
// closely.
#define QUIRE_WGMMA_FP8_TILES(X) \
  X(16)                          \
  X(32)                          \
  X(64)                          \
  X(96)                          \
  X(112)                         \
  X(128)                         \
  X(144)                         \
  X(152)                         \
  X(160)                         \
  X(176)                         \
  X(192)
inline constexpr int kFp8Weights = 128;
constexpr size_t fp8_shared_bytes(int tokens, int num_stages) {
  return shared_bytes(kFp8Weights, tokens, true, num_stages) +
         static_cast<size_t>(kWarpgroups * tokens) * sizeof(float);
}

using Kernel = void (*)(Params);
// One kernel per tile of QUIRE_WGMMA_TILES.
extern const Kernel kBf16Kernels[];
extern const Kernel kF16Kernels[];
// One kernel per tile of QUIRE_WGMMA_FP8_TILES.
extern const Kernel kFp8Kernels[];

// Rows of x per tile. If each expert has few rows, a small tile avoids multiplying rows that are
// not stored.
inline constexpr int kGroupedTokens[] = {32, 64, 128};
inline constexpr int kMostGroupedTokens = 128;

// Rows of w in a tile of grouped products. Large tiles read fewer bytes from the L2 per
// multiplication; with many tokens, the L2's bandwidth is the limit.
inline constexpr int kGroupedWeights = 128;
inline constexpr int kManyGroupedWeights = 256;

using GroupedKernel = void (*)(GroupedParams);
// The type of the operands: the output's type, or E4M3 with a scale per row or per block.
enum class GroupedOperand { kSame, kRowScales, kBlockScales };
struct GroupedTile {
  int weights = 0;  // rows of w
  int tokens = 0;   // one of kGroupedTokens
};
// The largest tile with this number of rows of x.
constexpr GroupedTile largest_tile(GroupedOperand operand, int tokens) {
  // The sums of a tile and the scales per block together do not fit in a thread's registers.
  const bool is_wide = tokens == kMostGroupedTokens && operand != GroupedOperand::kBlockScales;
  return {is_wide ? kManyGroupedWeights : kGroupedWeights, tokens};
}
// Bytes of shared memory: as for other products, plus the scales of a tile's rows of x for each
// warpgroup.
constexpr size_t grouped_shared_bytes(const GroupedTile& tile, int num_stages) {
  return shared_bytes(tile.weights, tile.tokens, true, num_stages) +
         kWarpgroups * kMostGroupedTokens * sizeof(float);
}
// is_f16: the type of operands and outputs, if the operands are not E4M3. The tile is
// largest_tile(), or one with kGroupedWeights rows of w.
GroupedKernel grouped_kernel(bool is_f16, GroupedOperand operand, const GroupedTile& tile);

}  // namespace quire::cuda::wgmma
