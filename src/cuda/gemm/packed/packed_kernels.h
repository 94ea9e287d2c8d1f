// Products with matrices whose weights stay packed in 4, 6 or 8 bits, for Hopper.
//
// Layout. Rows are stored in panels of 32 rows, and each panel in blocks of columns: 256 columns
// with 4 bits, 128 with 6 and 8 bits. A block is contiguous, so that one bulk copy loads it: the
// header of ops/quantized_format.h, then the values in slices of 64 columns. A panel's last block
// may have fewer slices. Integers are unsigned, and 2^(bits - 1) is subtracted from them.
//
// A slice is two tiles of 16 rows, and a tile four steps of 16 columns: the A operands of the
// instruction mma.m16n8k16, in the order in which the 32 lanes of a warp hold them. In step s, lane
// 4 g + q has columns 16 s + 4 q to 16 s + 4 q + 3 of rows g and g + 8. (The order of K within an
// instruction is free as long as A and B agree.) A tile is:
//   4 bits: words[32 lanes][4 steps]. Nibble i of a word is in row g + 8 (i % 2), column
//           2 (i / 2 % 2) + i / 4.
//   6 bits: the lower 4 bits as with 4 bits, then the upper 2 bits in
//           words[32 lanes][2 step pairs]. Of a word's 16 fields of 2 bits, fields
//           4 u + i % 4 + 8 (i / 4) belong to the nibbles i of step u of the pair.
//   8 bits: words[2 step pairs][32 lanes][2 steps][2]. Byte i of word h is in row
//           g + 8 (i % 2), column 2 h + i / 2.
//   E2M1:   words as with 4 bits, but the codes of nibbles i and i + 4 are at e2m1_place(i),
//           one in each half of the word.
#pragma once

#include <cstdint>

#include "cuda/gemm/dense/kernels/wgmma_kernel.h"
#include "cuda/ops/op_kernels.h"
#include "ops/quantized_format.h"

namespace quire::cuda {

inline constexpr int kSliceColumns = 64;
inline constexpr int kPackedTileRows = 16;
constexpr int packed_block_columns(int bits) {
  return bits == 4 ? 256 : 128;
}
constexpr int packed_tile_bytes(int bits) {
  return kPackedTileRows * kSliceColumns * bits / 8;
}

// The layout of one format.
struct PackedLayout {
  QuantizedFormat format = {};
  QuantizedHeader header = {};  // of a block
  // The kernel subtracts 2^(bits - 1) from every value. For formats with minimums or zero points,
  // whose values have no offset, `shifted` is 2^(bits - 1), and a group's minimum is reduced by
  // `shifted` times its scale.
  float shifted = 0;

  constexpr int block_columns() const { return packed_block_columns(format.value_bits); }
  constexpr int slice_bytes() const { return 2 * packed_tile_bytes(format.value_bits); }
  // The size of a block of `slices` slices in bytes.
  constexpr int block_bytes(int64_t slices) const {
    return static_cast<int>(header.num_bytes + slices * slice_bytes());
  }
  constexpr int block_bytes() const { return block_bytes(block_columns() / kSliceColumns); }
  constexpr bool is_e2m1() const { return format.values == QuantizedValues::kE2m1; }
  // The number that is added to stored values, so that zero is stored as 2^(bits - 1).
  constexpr int value_shift() const {
    const bool is_centered = !format.has_minimums && !format.has_zeros && !is_e2m1();
    return is_centered ? (1 << (format.value_bits - 1)) - format.offset : 0;
  }
  // Whether the kernel subtracts a minimum or zero point per group.
  constexpr bool has_minimums() const { return format.has_minimums || format.has_zeros; }
};

PackedLayout packed_layout(const QuantizedFormat& format);

// The position of the values of 4 columns of a row in the 32-bit words of a slice. Value i is at
//   4, 6 bits: bit `shift` + 8 (i / 2) + 16 (i % 2) of `word`; and the upper 2 bits of 6
//              at bit `high_shift` + 4 (i / 2) + 16 (i % 2) of `high_word`.
//   8 bits: bit `shift` + 16 (i % 2) of word `word` + i / 2.
struct PackedQuad {
  int word;
  int shift;
  int high_word;
  int high_shift;
};

// row: of the panel; column: of the slice, a multiple of 4.
constexpr PackedQuad packed_quad(int bits, int row, int column) {
  const int tile = row / kPackedTileRows * (kPackedTileRows * kSliceColumns * bits / 32);
  const int upper_row = row % kPackedTileRows / 8;
  const int lane = row % 8 * 4 + column % 16 / 4;
  const int step = column / 16;
  if (bits == 8) return {tile + (step / 2 * 32 + lane) * 4 + step % 2 * 2, 8 * upper_row, 0, 0};
  return {tile + lane * 4 + step, 4 * upper_row, tile + 128 + lane * 2 + step / 2,
          2 * (step % 2 * 4 + upper_row)};
}

// The positions of the sign and of the lowest of the other bits of an E2M1 code in half a word. Two
// of the four codes become BF16 numbers by at most one shift and a mask, because sign, exponent and
// mantissa are as far apart as in BF16. The other two take two shifts and two masks. In nibbles,
// three codes would take two shifts and two masks, and the fourth one shift less.
struct E2m1Place {
  int sign;
  int magnitude;
};
constexpr E2m1Place e2m1_place(int i) {
  if (i == 0) return {15, 6};
  if (i == 1) return {10, 3};
  if (i == 2) return {9, 0};
  return {14, 11};
}

// Rows of one format on the device.
struct PackedRows {
  PackedLayout layout;
  const void* panels = nullptr;
  int64_t first_row = 0;  // of the matrix
  int64_t num_rows = 0;
  int64_t num_columns = 0;

  constexpr int num_panels() const { return static_cast<int>(ceil_div(num_rows, kPanelRows)); }
  constexpr int num_blocks() const {
    return static_cast<int>(ceil_div(num_columns, int64_t{layout.block_columns()}));
  }
  constexpr int64_t last_block_bytes() const {
    const int64_t before = (num_blocks() - 1) * int64_t{layout.block_columns()};
    return layout.block_bytes(ceil_div(num_columns - before, int64_t{kSliceColumns}));
  }
  constexpr int64_t panel_bytes() const {
    return (num_blocks() - 1) * int64_t{layout.block_bytes()} + last_block_bytes();
  }
};

// Rows that are grouped by their matrix, such as those of a layer's experts. All matrices have the
// same layout; PackedGemmCall::w is the first one. All data except the sizes is on the device, so
// that a launch is the same for any choice of experts.
struct PackedGroups {
  const wgmma::ExpertTile* tiles = nullptr;  // each has adjacent rows of one matrix
  const int32_t* num_tiles = nullptr;
  int64_t most_tiles = 0;
  // If `tiles` is null, there are most_tiles tiles: tile i is row i, with matrix experts[i].
  const int32_t* experts = nullptr;
  int64_t matrix_bytes = 0;  // between the panels of two matrices
};

// out[t, n] = sum_k x[t, k] * w[n, k] + bias[n], for the rows n of w.
struct PackedGemmCall {
  const PackedRows* w = nullptr;
  TensorView x;  // F16 or BF16 [m, k]; run_packed_gemm(): m at most kMaxPackedRows
  // In x's type, for all rows of the matrix; with groups, [matrices, rows]. Data null: no bias.
  TensorView bias;
  TensorView out;  // of x's type or F32 [m, rows of the matrix]
  // [m, rows / 2]; data null: none. gated_out = gated_mul(activation, out), and `out` is not
  // written. Requires packed_gemm_gates().
  TensorView gated_out = {};
  Activation activation = Activation::kSilu;  // others, except kGelu, only by run_packed_tiles()
  // For run_packed_tiles() only: `out` and gated_out have the rows of the groups' tiles, and x has
  // one image per tile. Null: all rows are multiplied by w.
  const PackedGroups* groups = nullptr;
};

// The maximum number of rows of x per launch of run_packed_gemm().
inline constexpr int64_t kMaxPackedRows = 8;

// Launch parameters of run_packed_gemm(), which measurements may change.
struct PackedGemmTuning {
  // The depth of a warp's ring, in blocks of weights. Two take 54 KiB per thread block with Q6_K,
  // and 74 KiB with Q4_K. The rest of an SM's shared memory is for the next product's early copies.
  int num_stages = 2;
  int blocks_per_sm = 2;
};

// Whether the kernel can compute gated_out for these rows, which must be a whole matrix.
bool packed_gemm_gates(const PackedRows& w);
// The bits of a row do not depend on the other rows or their number.
void run_packed_gemm(const LaunchContext& context, int num_sms, const PackedGemmCall& call,
                     const PackedGemmTuning& tuning = {});

// The columns of x per stage of run_packed_tiles().
inline constexpr int kChunkColumns = 128;

// Launch parameters of run_packed_tiles().
struct PackedTilePlan {
  int tokens = 0;      // rows of x in a tile: 16, 32, 64 or 128
  int warpgroups = 2;  // per thread block, 1 or 2; each has two panels
  int splits = 1;      // of K: 1, 2 or 4 thread blocks per cluster
};
// The number of rows of x in the smallest tile with at least m rows, or in the largest tile.
int packed_tile_tokens(int64_t m);
PackedTilePlan packed_tile_plan(const PackedRows& w, int64_t m, int num_sms);
// Writes x, with its columns reordered by `order` unless that is null, as images of the kernel's
// shared memory: out[tiles][slices][tokens] with 64 columns each. In each group of 16 columns,
// columns 0, 1, 4, 5, 8, 9, 12 and 13 come first, then 2, 3, 6, 7, 10, 11, 14 and 15. In row t of a
// tile, vector i of 8 adjacent elements is stored at i ^ (t % 8). Rows past the end are zeros.
// Columns past the end are zeros, up to a multiple of kChunkColumns.
void run_tile_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                      int tile_rows, void* out);
// Writes the image of each tile of the groups in the same layout. Row r of the groups is row
// x_rows[r] of x, or row r if x_rows is null. `order`: of the columns of each matrix, [matrices,
// columns].
void run_tile_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                      const PackedGroups& groups, const int32_t* x_rows, int tile_rows, void* out);
// Like run_packed_gemm(), for any number of rows. x must be the output of run_tile_columns().
void run_packed_tiles(const LaunchContext& context, const PackedTilePlan& plan,
                      const PackedGemmCall& call);

// Products of rows that are grouped by their matrix. Each tile has at most kMaxPackedRows rows.
struct PackedExpertsCall {
  const PackedRows* w = nullptr;  // of the first matrix
  PackedGroups groups;
  TensorView x;
  // Row r of the groups is row x_rows[r] of x, or r / rows_per_x if x_rows is null.
  const int32_t* x_rows = nullptr;
  int rows_per_x = 1;
  TensorView bias;  // in x's type, [matrices, rows]; data null: none
  // In x's type. With is_gated, out = gated_mul(activation, the product); this requires
  // packed_gemm_gates(). Otherwise columns from w->first_row on are written.
  TensorView out;
  bool is_gated = false;
  Activation activation = Activation::kSilu;
  // Whether the groups were complete before the previous kernel let this one start. If so, the
  // copies of weights begin early.
  bool are_ready = false;
};
// The bits of a row do not depend on the other rows or their number.
void run_packed_experts(const LaunchContext& context, const PackedExpertsCall& call);
// out[r, k] = x[x_row, order[matrix of r, k]] for each row r of the groups. x_row is derived from
// x_rows and rows_per_x as above. out and x are F16 or BF16.
void run_permute_groups(const LaunchContext& context, const PackedExpertsCall& call,
                        const int32_t* order, const TensorView& out);

// Unpacks rows [first_row, first_row + rows of out) of w, where first_row is a multiple of 32:
// out[i, order[k]] = w[first_row + i, k]. out is F16 or BF16. `order` null: columns are in order.
void run_unpack_rows(const LaunchContext& context, const PackedRows& w, int64_t first_row,
                     const int32_t* order, const TensorView& out);
// out[t, order[k]] = scale * w[ids[t], k] for the ids that are in w.
void run_gather_packed_rows(const LaunchContext& context, const PackedRows& w, const int32_t* ids,
                            const int32_t* order, float scale, const TensorView& out);
// out[t, k] = x[t, order[k]]; F16 or BF16. `order` null: out = x.
void run_permute_columns(const LaunchContext& context, const TensorView& x, const int32_t* order,
                         const TensorView& out);

}  // namespace quire::cuda
