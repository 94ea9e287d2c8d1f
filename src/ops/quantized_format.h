// The formats in which devices keep matrices of quantized blocks and of integers. An element is
// scale * value - minimum, scale * (value - offset), scale * (value - zero point) or, in MXFP4,
// scale * (number of 4 bits). Scales, minimums and zero points are per group of columns. Plain
// data, for kernels of every device.
#pragma once

#include <cstdint>

namespace quire {

// The type of the scales of groups. kBlockBytes: a scale is an F16 number per block of 256 columns
// times a signed byte per group. kE8m0: a byte e stands for 2^(e - 127).
enum class QuantizedScales : uint8_t { kBlockBytes, kF16, kBF16, kF32, kE8m0 };

// The meaning of a value. kE2m1: the code of a floating-point number of 4 bits (e2m1_to_f32() of
// tensor/gguf_blocks.h).
enum class QuantizedValues : uint8_t { kIntegers, kE2m1 };

struct QuantizedFormat {
  int value_bits;     // 4, 6 or 8
  int group_k;        // 16, 32, 64, 128 or 256
  int offset;         // 0 with minimums or zero points
  bool has_minimums;  // only with kBlockBytes and kF16
  QuantizedScales scales = QuantizedScales::kF16;
  bool has_zeros = false;
  QuantizedValues values = QuantizedValues::kIntegers;  // kE2m1: 4 bits, groups of 32, kE8m0

  friend bool operator==(const QuantizedFormat&, const QuantizedFormat&) = default;

  constexpr bool has_block_scales() const { return scales == QuantizedScales::kBlockBytes; }
  constexpr int64_t scale_bytes() const {  // of a group
    if (has_block_scales() || scales == QuantizedScales::kE8m0) return 1;
    return scales == QuantizedScales::kF32 ? 4 : 2;
  }
  // The number of groups of group_k columns in 32 * groups columns.
  constexpr int64_t num_groups(int64_t groups) const {
    return (groups * 32 + group_k - 1) / group_k;
  }
};

// Rows are kept in panels of 32, and a panel in blocks of columns. A block begins with a header. If
// a block has `num` groups of group_k columns, its header has
//   F16 scales[32], if has_block_scales(); then F16 minimums[32], if has_minimums;
//   group scales[num][32]; then group minimums[num][32] if has_minimums, unsigned bytes if
//     has_block_scales(), otherwise F16; then group zero points[num][32] if has_zeros, unsigned
//     bytes.
inline constexpr int64_t kPanelRows = 32;

// The byte offsets of the parts of a header.
struct QuantizedHeader {
  int64_t block_scales = 0;
  int64_t block_minimums = kPanelRows * 2;
  int64_t scales = 0;
  int64_t minimums = 0;
  int64_t zeros = 0;  // a format has minimums or zero points, not both
  int64_t num_bytes = 0;
};

// The header of a block with `groups` groups of 32 columns.
constexpr QuantizedHeader quantized_header(const QuantizedFormat& format, int64_t groups) {
  const int64_t columns = format.has_minimums ? 2 : 1;
  const int64_t scales_bytes = format.num_groups(groups) * kPanelRows * format.scale_bytes();
  const int64_t zeros_bytes = format.has_zeros ? format.num_groups(groups) * kPanelRows : 0;
  QuantizedHeader header;
  header.scales = format.has_block_scales() ? kPanelRows * 2 * columns : 0;
  header.minimums = header.zeros = header.scales + scales_bytes;
  header.num_bytes = header.scales + scales_bytes * columns + zeros_bytes;
  return header;
}

}  // namespace quire
