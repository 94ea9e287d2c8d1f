#include "cpu/ops/quantized_linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

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

Status check_source(const LinearSource& source) {
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
    if (source.biases.empty() || source.biases[i].data == nullptr) continue;
    const TensorView& bias = source.biases[i];
    if (!is_weight_dtype(bias.dtype) || bias.shape.num_elements() != matrix.shape[0]) {
      return invalid_argument(fmt::format("[ops] wrong bias {}; got {} elements of {}, expected {}",
                                          i, bias.shape.num_elements(), dtype_name(bias.dtype),
                                          matrix.shape[0]));
    }
  }
  return {};
}

// One feature's part of a block of kBlockK columns.
struct FeatureBlock {
  std::array<uint16_t, kGroups> scales = {};  // one per block of the file, F16
  std::array<uint16_t, kGroups> minimums = {};
  std::array<int8_t, 2 * kGroups> group_scales = {};
  std::array<uint8_t, 2 * kGroups> group_minimums = {};
  std::array<uint8_t, kBlockK> values = {};
};

// Reads `groups` groups of 32 columns.
FeatureBlock read_feature(const GgufBlockType& type, const std::byte* bytes, int64_t groups) {
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

// The parts of a block in memory (quantized/kernel.h).
struct BlockPlaces {
  std::byte* block_scales;
  std::byte* block_minimums;
  std::byte* scales;
  std::byte* minimums;
  std::byte* values;
};

BlockPlaces places_in(std::byte* block, const Format& format, int64_t groups) {
  const int64_t num_groups = groups * kGroupK / format.group_k;
  BlockPlaces places = {};
  places.block_scales = block;
  places.block_minimums = block + kFeatures * 2;
  places.scales = block;
  if (format.has_block_scales) places.scales += kFeatures * (format.has_minimums ? 4 : 2);
  places.minimums = places.scales + num_groups * kFeatures * (format.has_block_scales ? 1 : 2);
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
  if (format.has_block_scales) {
    put(places.block_scales, lane, feature.scales[0]);
    if (format.has_minimums) put(places.block_minimums, lane, feature.minimums[0]);
  }
  const int64_t num_groups = groups * kGroupK / format.group_k;
  for (int64_t g = 0; g < num_groups; ++g) {
    const auto group = static_cast<size_t>(g);
    const int64_t at = g * kFeatures + lane;
    if (format.has_block_scales) {
      put(places.scales, at, feature.group_scales[group]);
      if (format.has_minimums) put(places.minimums, at, feature.group_minimums[group]);
    } else {
      put(places.scales, at, feature.scales[group]);
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
          .has_block_scales = type.block_elements == kBlockK};
}

Result<std::unique_ptr<QuantizedLinear>> QuantizedLinear::pack(const LinearSource& source,
                                                               ThreadPool& pool) {
  QUIRE_RETURN_IF_ERROR(check_source(source));
  std::unique_ptr<QuantizedLinear> linear(new QuantizedLinear);
  QuantizedLinear& l = *linear;
  l.in_features_ = source.blocks.front().shape[1];
  l.list_panels(source);
  const Panel& last = l.panels_.back();
  QUIRE_ASSIGN_OR_RETURN(l.weights_,
                         Buffer::host(static_cast<size_t>(
                             last.offset + quantized::row_bytes(last.format, l.num_groups()))));
  pool.parallel_for_by_node(std::ssize(l.panels_), [&](int64_t i) {
    l.pack_panel(l.panels_[static_cast<size_t>(i)], source);
  });
  int64_t first = 0;
  if (!source.biases.empty()) l.bias_.resize(static_cast<size_t>(l.out_features_));
  for (size_t i = 0; i < source.biases.size(); ++i) {
    const TensorView& bias = source.biases[i];
    const int64_t rows = source.blocks[i].shape[0];
    if (bias.data != nullptr) convert_to_f32(bias.data, bias.dtype, rows, l.bias_.data() + first);
    first += rows;
  }
  return linear;
}

void QuantizedLinear::list_panels(const LinearSource& source) {
  int64_t offset = 0;
  for (const BlockMatrix& matrix : source.blocks) {
    const Format format = quantized_format(*matrix.type);
    for (int64_t row = 0; row < matrix.shape[0]; row += kFeatures) {
      panels_.push_back({.format = format,
                         .offset = offset,
                         .first_feature = out_features_ + row,
                         .num_features = std::min(kFeatures, matrix.shape[0] - row)});
      offset += quantized::row_bytes(format, num_groups());
    }
    out_features_ += matrix.shape[0];
  }
}

void QuantizedLinear::pack_panel(const Panel& panel, const LinearSource& source) {
  int64_t row = panel.first_feature;
  auto matrix = source.blocks.begin();
  for (; row >= matrix->shape[0]; ++matrix) row -= matrix->shape[0];
  auto* block = static_cast<std::byte*>(weights_.data()) + panel.offset;
  for (int64_t first = 0; first < num_groups(); first += kGroups) {
    const int64_t groups = std::min(kGroups, num_groups() - first);
    const BlockPlaces places = places_in(block, panel.format, groups);
    const int64_t from = first * kGroupK / matrix->type->block_elements * matrix->type->block_bytes;
    for (int64_t lane = 0; lane < panel.num_features; ++lane) {
      const FeatureBlock feature =
          read_feature(*matrix->type, matrix->row(row + lane) + from, groups);
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

}  // namespace

// The products are those of dequantize(), in its order.
void QuantizedLinear::unpack_row(int64_t feature, float* out) const {
  const auto after = std::ranges::upper_bound(panels_, feature, {}, &Panel::first_feature);
  const Panel& panel = *std::prev(after);
  const Format& format = panel.format;
  const int64_t lane = feature - panel.first_feature;
  auto* block = const_cast<std::byte*>(data(panel));
  for (int64_t first = 0; first < num_groups(); first += kGroups) {
    const int64_t groups = std::min(kGroups, num_groups() - first);
    const BlockPlaces places = places_in(block, format, groups);
    for (int64_t k = 0; k < groups * kGroupK; ++k) {
      const int64_t at = k / format.group_k * kFeatures + lane;
      float scale = 0;
      float minimum = 0;
      if (format.has_block_scales) {
        scale = f16_to_f32(get<uint16_t>(places.block_scales, lane)) *
                static_cast<float>(get<int8_t>(places.scales, at));
      } else {
        scale = f16_to_f32(get<uint16_t>(places.scales, at));
      }
      if (format.has_minimums && format.has_block_scales) {
        minimum = f16_to_f32(get<uint16_t>(places.block_minimums, lane)) *
                  static_cast<float>(get<uint8_t>(places.minimums, at));
      } else if (format.has_minimums) {
        minimum = f16_to_f32(get<uint16_t>(places.minimums, at));
      }
      const int value = value_at(places.values, format.value_bits, k, lane) - format.offset;
      out[first * kGroupK + k] = scale * static_cast<float>(value) - minimum;
    }
    block += quantized::block_bytes(format, groups);
  }
}

}  // namespace quire::cpu
