#include "cpu/ops/quantized_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/numbers.h"
#include "cpu/ops/packed_linear.h"
#include "tensor/dtype.h"

namespace quire::cpu {
namespace {

using quantized::Format;
using quantized::kBlockK;
using quantized::kFeatures;
using quantized::kGroupK;

constexpr int64_t kGroups = kBlockK / kGroupK;  // of a whole block
constexpr int64_t kQuads = kGroupK / 4;         // of a group

Status check_biases(const LinearSource& source) {
  const size_t num_matrices = source.blocks.empty() ? source.weights.size() : source.blocks.size();
  if (!source.biases.empty() && source.biases.size() != num_matrices) {
    return invalid_argument(fmt::format("[ops] wrong number of biases; got {}, expected {}",
                                        source.biases.size(), num_matrices));
  }
  for (size_t i = 0; i < source.biases.size(); ++i) {
    const TensorView& bias = source.biases[i];
    if (bias.data == nullptr) continue;
    const int64_t rows =
        source.blocks.empty() ? source.weights[i].values.shape[0] : source.blocks[i].shape[0];
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != rows) {
      return invalid_argument(fmt::format("[ops] wrong bias {}; got {} elements of {}, expected {}",
                                          i, bias.shape.num_elements(), dtype_name(bias.dtype),
                                          rows));
    }
  }
  return {};
}

Status check_blocks(const LinearSource& source) {
  const int64_t columns = source.blocks.front().shape[1];
  for (size_t i = 0; i < source.blocks.size(); ++i) {
    const BlockMatrix& matrix = source.blocks[i];
    if (matrix.shape.rank() != 2 || matrix.shape[1] != columns || matrix.shape[0] < 1 ||
        columns < 1 || columns % matrix.type->block_elements != 0 || matrix.type->plain) {
      return invalid_argument(
          fmt::format("[ops] weight blocks {} have shape {} of {}; expected {} columns in whole "
                      "quantized blocks",
                      i, shape_text(matrix.shape), matrix.type->name, columns));
    }
  }
  return {};
}

// Whether the values and scales of a matrix of integers have the shapes and types of its scheme.
bool is_consistent(const WeightView& matrix) {
  const Shape& shape = matrix.values.shape;
  if (shape.rank() != 2 || shape[0] < 1 || shape[1] < 1) return false;
  if (matrix.scheme.scales == ScaleLayout::kNone) return false;
  return matrix.values.dtype == DType::kI8 && matrix.values.data != nullptr &&
         matrix.scales.data != nullptr && is_weight_dtype(matrix.scales.dtype) &&
         matrix.scales.shape == scales_shape(matrix.scheme, shape);
}

Status check_zeros(const WeightView& matrix, size_t i) {
  const TensorView& zeros = matrix.zeros;
  const bool has_zeros = zeros.data != nullptr;
  if (has_zeros != matrix.scheme.has_zeros) {
    return invalid_argument(fmt::format("[ops] weight block {} has {}zero points; expected {}", i,
                                        has_zeros ? "" : "no ", describe(matrix.scheme)));
  }
  if (!has_zeros || (zeros.dtype == DType::kI8 && zeros.shape == matrix.scales.shape)) return {};
  return invalid_argument(fmt::format(
      "[ops] weight block {} has wrong zero points; got {} of {}, expected {} of i8, as its scales",
      i, shape_text(zeros.shape), dtype_name(zeros.dtype), shape_text(matrix.scales.shape)));
}

std::span<const int32_t> order_of(const WeightView& matrix) {
  if (matrix.order.data == nullptr) return {};
  return {matrix.order.as<int32_t>(), static_cast<size_t>(matrix.values.shape[1])};
}

bool is_permutation_of_columns(std::span<const int32_t> order) {
  std::vector<bool> seen(order.size());
  for (const int32_t column : order) {
    if (column < 0 || column >= std::ssize(order) || seen[static_cast<size_t>(column)])
      return false;
    seen[static_cast<size_t>(column)] = true;
  }
  return true;
}

// All matrices have the order of the first.
Status check_order(const WeightView& matrix, const WeightView& first, size_t i) {
  const TensorView& order = matrix.order;
  const int64_t num_columns = matrix.values.shape[1];
  if (order.data != nullptr &&
      (order.dtype != DType::kI32 || order.shape.num_elements() != num_columns)) {
    return invalid_argument(fmt::format(
        "[ops] weight block {} has a wrong order of columns; got {} of {}, expected {} of i32", i,
        order.shape.num_elements(), dtype_name(order.dtype), num_columns));
  }
  if (!std::ranges::equal(order_of(matrix), order_of(first))) {
    return invalid_argument(
        fmt::format("[ops] weight block {} has its columns in another order than the first", i));
  }
  if (i > 0 || is_permutation_of_columns(order_of(matrix))) return {};
  return invalid_argument(fmt::format(
      "[ops] weight block {} has a wrong order of columns; expected each of its {} columns once", i,
      num_columns));
}

Status check_integers(const LinearSource& source) {
  const WeightView& first = source.weights.front();
  for (size_t i = 0; i < source.weights.size(); ++i) {
    const WeightView& matrix = source.weights[i];
    const bool fits = matrix.scheme == first.scheme && is_consistent(matrix) &&
                      matrix.values.shape[1] == first.values.shape[1];
    if (!fits) {
      return invalid_argument(fmt::format(
          "[ops] weight block {} does not fit; got shape {} and scales {} of {}, "
          "expected {} with {} columns",
          i, shape_text(matrix.values.shape), shape_text(matrix.scales.shape),
          dtype_name(matrix.scales.dtype), describe(first.scheme), first.values.shape[1]));
    }
    QUIRE_RETURN_IF_ERROR(check_zeros(matrix, i));
    QUIRE_RETURN_IF_ERROR(check_order(matrix, first, i));
    if (!quantized_format(matrix.scheme, matrix.scales.dtype, matrix.values.shape)) {
      return unimplemented(
          fmt::format("[ops] unsupported weight scheme; got {}, expected groups of a multiple of "
                      "16 columns",
                      describe(matrix.scheme)));
    }
  }
  return {};
}

Status check_source(const LinearSource& source) {
  QUIRE_RETURN_IF_ERROR(source.blocks.empty() ? check_integers(source) : check_blocks(source));
  return check_biases(source);
}

// One feature's part of a block of kBlockK columns.
struct FeatureBlock {
  // The bits of one scale per group or, with kBlockBytes, one per block; and of minimums.
  std::array<uint32_t, 2 * kGroups> scales = {};
  std::array<uint16_t, kGroups> minimums = {};
  std::array<int8_t, 2 * kGroups> group_scales = {};
  std::array<uint8_t, 2 * kGroups> group_minimums = {};
  std::array<uint8_t, 2 * kGroups> zeros = {};
  std::array<uint8_t, kBlockK> values = {};
};

// Reads `groups` groups of 32 columns.
FeatureBlock read_blocks(const GgufBlockType& type, const std::byte* bytes, int64_t groups) {
  FeatureBlock feature;
  QuantizedBlock block;
  for (int64_t at = 0; at < groups * kGroupK; at += type.block_elements) {
    type.read(bytes + at / type.block_elements * type.block_bytes, block);
    const auto idx = static_cast<size_t>(at / type.block_elements);
    feature.scales[idx] = block.scale;
    feature.minimums[idx] = block.minimum;
    std::copy_n(block.values.data(), type.block_elements, feature.values.data() + at);
  }
  feature.group_scales = block.group_scales;
  feature.group_minimums = block.group_minimums;
  return feature;
}

// The same of row `row` of a matrix of integers, whose columns begin at `first_column`.
FeatureBlock read_integers(const WeightView& matrix, int64_t row, int64_t first_column,
                           const Format& format) {
  const Shape scale_shape = scale_block(matrix.scheme, matrix.values.shape);
  const int64_t num_columns = matrix.values.shape[1];
  const int64_t count = std::min(kBlockK, num_columns - first_column);
  const int offset = 1 << (matrix.scheme.bits - 1);  // makes signed integers unsigned
  const auto* const values = matrix.values.as<int8_t>() + row * num_columns + first_column;
  const auto scale_bytes = static_cast<size_t>(format.scale_bytes());
  FeatureBlock feature;
  for (int64_t k = 0; k < count; ++k) {
    feature.values[static_cast<size_t>(k)] = static_cast<uint8_t>(values[k] + offset);
  }
  for (int64_t k = 0; k < count; k += format.group_k) {
    const auto group = static_cast<size_t>(k / format.group_k);
    const int64_t at =
        row / scale_shape[0] * matrix.scales.shape[1] + (first_column + k) / scale_shape[1];
    std::memcpy(&feature.scales[group], matrix.scales.as<std::byte>() + at * format.scale_bytes(),
                scale_bytes);
    if (!format.has_zeros) continue;
    feature.zeros[group] = static_cast<uint8_t>(matrix.zeros.as<int8_t>()[at] + offset);
  }
  return feature;
}

// The parts of a block in memory (quantized/kernel.h).
struct BlockPlaces {
  std::byte* block_scales;
  std::byte* block_minimums;
  std::byte* scales;
  std::byte* minimums;
  std::byte* zeros;
  std::byte* values;
};

BlockPlaces places_in(std::byte* block, const Format& format, int64_t groups) {
  const int64_t scales_bytes = format.num_groups(groups) * kFeatures * format.scale_bytes();
  BlockPlaces places = {};
  places.block_scales = block;
  places.block_minimums = block + kFeatures * 2;
  places.scales = block;
  if (format.has_block_scales()) places.scales += kFeatures * (format.has_minimums ? 4 : 2);
  places.minimums = places.scales + scales_bytes;
  places.zeros = places.minimums;  // a format has one of the two
  places.values = block + quantized::header_bytes(format, groups);
  return places;
}

template <typename T>
void put(std::byte* base, int64_t idx, T value) {
  std::memcpy(base + idx * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

template <typename T>
T get(const std::byte* base, int64_t idx) {
  T value;
  std::memcpy(&value, base + idx * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

void pack_scales(const FeatureBlock& feature, int64_t lane, const Format& format, int64_t groups,
                 const BlockPlaces& places) {
  if (format.has_block_scales()) {
    put(places.block_scales, lane, static_cast<uint16_t>(feature.scales[0]));
    if (format.has_minimums) put(places.block_minimums, lane, feature.minimums[0]);
  }
  for (int64_t g = 0; g < format.num_groups(groups); ++g) {
    const auto group = static_cast<size_t>(g);
    const int64_t at = g * kFeatures + lane;
    if (format.has_zeros) put(places.zeros, at, feature.zeros[group]);
    if (format.has_block_scales()) {
      put(places.scales, at, feature.group_scales[group]);
      if (format.has_minimums) put(places.minimums, at, feature.group_minimums[group]);
    } else if (format.scales == quantized::Scales::kF32) {
      put(places.scales, at, feature.scales[group]);
    } else {
      put(places.scales, at, static_cast<uint16_t>(feature.scales[group]));
      if (format.has_minimums) put(places.minimums, at, feature.minimums[group]);
    }
  }
}

// Adds bits to the 4 bytes of quad `quad` of a feature.
void or_quad(std::byte* quads, int64_t quad, int64_t lane, uint32_t bits) {
  const int64_t at = quad * kFeatures + lane;
  put(quads, at, get<uint32_t>(quads, at) | bits);
}

void pack_values(const FeatureBlock& feature, int64_t lane, int value_bits, int64_t groups,
                 std::byte* values) {
  constexpr uint32_t kLowBits = 0x0F0F0F0F;
  for (int64_t quad = 0; quad < groups * kQuads; ++quad) {
    std::byte* group = values + quad / kQuads * kGroupK * kFeatures * value_bits / 8;
    const int64_t in_group = quad % kQuads;
    const int64_t half = in_group / 4;
    const auto four =
        get<uint32_t>(reinterpret_cast<const std::byte*>(feature.values.data()), quad);
    if (value_bits == 8) {
      or_quad(group, in_group, lane, four);
      continue;
    }
    or_quad(group, in_group % 4, lane, (four & kLowBits) << (4 * half));
    if (value_bits == 6)
      or_quad(group, 4 + half, lane, (four >> 4 & kLowBits) << (2 * (in_group % 4)));
  }
}

}  // namespace

Format quantized_format(const GgufBlockType& type) {
  return {.value_bits = type.value_bits <= 4   ? 4
                        : type.value_bits <= 6 ? 6
                                               : 8,
          .group_k = type.group_elements,
          .offset = type.offset,
          .has_minimums = type.has_minimums,
          .scales = type.block_elements == kBlockK ? quantized::Scales::kBlockBytes
                                                   : quantized::Scales::kF16};
}

std::optional<Format> quantized_format(const WeightScheme& scheme, DType scales,
                                       const Shape& matrix) {
  const int64_t columns_per_scale = scale_block(scheme, matrix)[1];
  const int64_t group_k =
      columns_per_scale >= matrix[1] ? kBlockK : std::gcd(columns_per_scale, kBlockK);
  if (group_k < kGroupK / 2) return std::nullopt;
  return Format{.value_bits = scheme.bits,
                .group_k = static_cast<int>(group_k),
                .offset = scheme.has_zeros ? 0 : 1 << (scheme.bits - 1),
                .has_minimums = false,
                .scales = scales == DType::kF16    ? quantized::Scales::kF16
                          : scales == DType::kBF16 ? quantized::Scales::kBF16
                                                   : quantized::Scales::kF32,
                .has_zeros = scheme.has_zeros};
}

// A matrix to pack, in one of the source's two forms.
class QuantizedLinear::SourceMatrix {
 public:
  explicit SourceMatrix(const BlockMatrix& blocks)
      : blocks_(&blocks), format_(quantized_format(*blocks.type)) {}
  explicit SourceMatrix(const WeightView& integers)
      : integers_(&integers),
        format_(*quantized_format(integers.scheme, integers.scales.dtype, integers.values.shape)) {}

  const Format& format() const { return format_; }
  int64_t num_rows() const {
    return blocks_ == nullptr ? integers_->values.shape[0] : blocks_->shape[0];
  }
  // Reads the groups of 32 columns from first_group on, at most a block.
  FeatureBlock read(int64_t row, int64_t first_group, int64_t groups) const {
    if (blocks_ == nullptr) return read_integers(*integers_, row, first_group * kGroupK, format_);
    const GgufBlockType& type = *blocks_->type;
    const int64_t from = first_group * kGroupK / type.block_elements * type.block_bytes;
    return read_blocks(type, blocks_->row(row) + from, groups);
  }

 private:
  const BlockMatrix* blocks_ = nullptr;
  const WeightView* integers_ = nullptr;
  Format format_;
};

Result<std::unique_ptr<QuantizedLinear>> QuantizedLinear::pack(const LinearSource& source,
                                                               ThreadPool& pool) {
  QUIRE_RETURN_IF_ERROR(check_source(source));
  std::unique_ptr<QuantizedLinear> linear(new QuantizedLinear);
  QuantizedLinear& l = *linear;
  std::vector<SourceMatrix> matrices;
  for (const BlockMatrix& matrix : source.blocks) matrices.emplace_back(matrix);
  if (source.blocks.empty()) {
    for (const WeightView& matrix : source.weights) matrices.emplace_back(matrix);
    const std::span<const int32_t> order = order_of(source.weights.front());
    l.order_.assign(order.begin(), order.end());
  }
  l.in_features_ = source.blocks.empty() ? source.weights.front().values.shape[1]
                                         : source.blocks.front().shape[1];
  l.list_panels(matrices);
  const Panel& last = l.panels_.back();
  QUIRE_ASSIGN_OR_RETURN(l.weights_,
                         Buffer::host(static_cast<size_t>(
                             last.offset + quantized::row_bytes(last.format, l.num_groups()))));
  pool.parallel_for_by_node(std::ssize(l.panels_), [&](int64_t i) {
    l.pack_panel(l.panels_[static_cast<size_t>(i)], matrices);
  });
  int64_t first = 0;
  if (!source.biases.empty()) l.bias_.resize(static_cast<size_t>(l.out_features_));
  for (size_t i = 0; i < source.biases.size(); ++i) {
    const TensorView& bias = source.biases[i];
    const int64_t rows = matrices[i].num_rows();
    if (bias.data != nullptr) convert_to_f32(bias.data, bias.dtype, rows, l.bias_.data() + first);
    first += rows;
  }
  return linear;
}

void QuantizedLinear::list_panels(std::span<const SourceMatrix> matrices) {
  int64_t offset = 0;
  for (const SourceMatrix& matrix : matrices) {
    for (int64_t row = 0; row < matrix.num_rows(); row += kFeatures) {
      panels_.push_back({.format = matrix.format(),
                         .offset = offset,
                         .first_feature = out_features_ + row,
                         .num_features = std::min(kFeatures, matrix.num_rows() - row)});
      offset += quantized::row_bytes(matrix.format(), num_groups());
    }
    out_features_ += matrix.num_rows();
  }
}

void QuantizedLinear::pack_panel(const Panel& panel, std::span<const SourceMatrix> matrices) {
  int64_t row = panel.first_feature;
  auto matrix = matrices.begin();
  for (; row >= matrix->num_rows(); ++matrix) row -= matrix->num_rows();
  auto* block = static_cast<std::byte*>(weights_.data()) + panel.offset;
  for (int64_t first = 0; first < num_groups(); first += kGroups) {
    const int64_t groups = std::min(kGroups, num_groups() - first);
    const BlockPlaces places = places_in(block, panel.format, groups);
    for (int64_t lane = 0; lane < panel.num_features; ++lane) {
      const FeatureBlock feature = matrix->read(row + lane, first, groups);
      pack_scales(feature, lane, panel.format, groups, places);
      pack_values(feature, lane, panel.format.value_bits, groups, places.values);
    }
    block += quantized::block_bytes(panel.format, groups);
  }
}

namespace {

// The value of column k of a block's feature, for k in the block.
int value_at(const std::byte* values, int value_bits, int64_t k, int64_t lane) {
  const std::byte* group = values + k / kGroupK * kGroupK * kFeatures * value_bits / 8;
  const int64_t quad = k % kGroupK / 4;
  const auto byte_of = [&](int64_t row) {
    return std::to_integer<int>(group[(row * kFeatures + lane) * 4 + k % 4]);
  };
  if (value_bits == 8) return byte_of(quad);
  const int low = byte_of(quad % 4) >> (4 * (quad / 4)) & 0xF;
  if (value_bits == 4) return low;
  return low | (byte_of(4 + quad / 4) >> (2 * (quad % 4)) & 3) << 4;
}

// The scale at position `at` of the groups of a block.
float scale_at(const Format& format, const BlockPlaces& places, int64_t lane, int64_t at) {
  switch (format.scales) {
    case quantized::Scales::kBlockBytes:
      return f16_to_f32(get<uint16_t>(places.block_scales, lane)) *
             static_cast<float>(get<int8_t>(places.scales, at));
    case quantized::Scales::kF16:
      return f16_to_f32(get<uint16_t>(places.scales, at));
    case quantized::Scales::kBF16:
      return bf16_to_f32(get<uint16_t>(places.scales, at));
    case quantized::Scales::kF32:
      break;
  }
  return get<float>(places.scales, at);
}

float minimum_at(const Format& format, const BlockPlaces& places, int64_t lane, int64_t at) {
  if (!format.has_minimums) return 0.0F;
  if (!format.has_block_scales()) return f16_to_f32(get<uint16_t>(places.minimums, at));
  return f16_to_f32(get<uint16_t>(places.block_minimums, lane)) *
         static_cast<float>(get<uint8_t>(places.minimums, at));
}

}  // namespace

// The products are those of dequantize() or write_plain_row(), in their order.
void QuantizedLinear::unpack_block(const Panel& panel, const std::byte* block, int64_t lane,
                                   int64_t first_group, float* out) const {
  const Format& format = panel.format;
  const int64_t groups = std::min(kGroups, num_groups() - first_group);
  const BlockPlaces places = places_in(const_cast<std::byte*>(block), format, groups);
  const int64_t first = first_group * kGroupK;
  const int64_t count = std::min(groups * kGroupK, in_features_ - first);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = k / format.group_k * kFeatures + lane;
    const int zero = format.has_zeros ? get<uint8_t>(places.zeros, at) : format.offset;
    const int value = value_at(places.values, format.value_bits, k, lane) - zero;
    const int64_t column = order_.empty() ? first + k : order_[static_cast<size_t>(first + k)];
    out[column] = scale_at(format, places, lane, at) * static_cast<float>(value) -
                  minimum_at(format, places, lane, at);
  }
}

void QuantizedLinear::unpack_row(int64_t feature, float* out) const {
  const auto after = std::ranges::upper_bound(panels_, feature, {}, &Panel::first_feature);
  const Panel& panel = *std::prev(after);
  const std::byte* block = data(panel);
  for (int64_t first = 0; first < num_groups(); first += kGroups) {
    unpack_block(panel, block, feature - panel.first_feature, first, out);
    block += quantized::block_bytes(panel.format, std::min(kGroups, num_groups() - first));
  }
}

}  // namespace quire::cpu
