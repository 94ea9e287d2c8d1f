#include "cpu/ops/quantized_linear.h"

#include <algorithm>
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

// Writes the values of one feature in a block, in the order of quantized/kernel.h.
template <int kBits>
void pack_values(const QuantizedRow& feature, int64_t lane, int64_t groups, std::byte* values) {
  constexpr uint32_t kLowBits = 0x0F0F0F0F;
  constexpr uint32_t kTwoBits = 0x03030303;
  const auto* const from = reinterpret_cast<const std::byte*>(feature.values.data());
  for (int64_t group = 0; group < groups; ++group) {
    std::byte* const to = values + group * kGroupK * kFeatures * kBits / 8;
    const auto four = [&](int64_t quad) { return get<uint32_t>(from, group * kQuads + quad); };
    const auto put_quad = [&](int64_t quad, uint32_t bits) {
      put(to, quad * kFeatures + lane, bits);
    };
    if constexpr (kBits == 8) {
      for (int64_t quad = 0; quad < kQuads; ++quad) put_quad(quad, four(quad));
      continue;
    }
    for (int64_t quad = 0; quad < kQuads / 2; ++quad) {
      put_quad(quad, (four(quad) & kLowBits) | (four(quad + kQuads / 2) & kLowBits) << 4);
    }
    if constexpr (kBits != 6) continue;
    for (int64_t half = 0; half < 2; ++half) {
      uint32_t upper = 0;
      for (int64_t i = 0; i < 4; ++i) upper |= (four(4 * half + i) >> 4 & kTwoBits) << (2 * i);
      put_quad(4 + half, upper);
    }
  }
}

void pack_values(const QuantizedRow& feature, int64_t lane, int value_bits, int64_t groups,
                 std::byte* values) {
  switch (value_bits) {
    case 4:
      return pack_values<4>(feature, lane, groups, values);
    case 6:
      return pack_values<6>(feature, lane, groups, values);
    default:
      return pack_values<8>(feature, lane, groups, values);
  }
}

}  // namespace

Result<std::unique_ptr<QuantizedLinear>> QuantizedLinear::pack(const LinearSource& source,
                                                               ThreadPool& pool,
                                                               PackedWeights* kept) {
  QUIRE_ASSIGN_OR_RETURN(const std::vector<QuantizedMatrix> matrices, quantized_matrices(source));
  std::unique_ptr<QuantizedLinear> linear(new QuantizedLinear);
  QuantizedLinear& l = *linear;
  const std::span<const int32_t> order = column_order_of(source);
  l.order_.assign(order.begin(), order.end());
  l.in_features_ = matrices.front().num_columns();
  l.list_panels(matrices);
  const Panel& last = l.panels_.back();
  const int64_t num_bytes = last.offset + quantized::row_bytes(last.format, l.num_groups());
  const auto pack_all = [&](std::byte* panels) {
    pool.parallel_for_by_node(std::ssize(l.panels_), [&](int64_t i) {
      const Panel& panel = l.panels_[static_cast<size_t>(i)];
      l.pack_panel(panel, matrices, panels + panel.offset);
    });
    return uint32_t{0};
  };
  QUIRE_ASSIGN_OR_RETURN(PackedWeights::Matrix packed,
                         kept_matrix(kept, source, "quantized panels", num_bytes, pack_all));
  l.weights_ = std::move(packed.bytes);
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

void QuantizedLinear::list_panels(std::span<const QuantizedMatrix> matrices) {
  int64_t offset = 0;
  for (const QuantizedMatrix& matrix : matrices) {
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

void QuantizedLinear::pack_panel(const Panel& panel, std::span<const QuantizedMatrix> matrices,
                                 std::byte* block) const {
  int64_t row = panel.first_feature;
  auto matrix = matrices.begin();
  for (; row >= matrix->num_rows(); ++matrix) row -= matrix->num_rows();
  for (int64_t first = 0; first < num_groups(); first += kGroups) {
    const int64_t groups = std::min(kGroups, num_groups() - first);
    std::byte* const values = block + quantized::header_bytes(panel.format, groups);
    for (int64_t lane = 0; lane < panel.num_features; ++lane) {
      const QuantizedRow feature = matrix->read(row + lane, first / kGroups, groups);
      write_quantized_header(feature, 0, lane, panel.format, groups, block);
      pack_values(feature, lane, panel.format.value_bits, groups, values);
    }
    block += quantized::block_bytes(panel.format, groups);
  }
}

namespace {

// The value of one feature of a block in column k of the block.
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
float scale_at(const Format& format, const std::byte* block, const QuantizedHeader& header,
               int64_t lane, int64_t at) {
  const std::byte* const scales = block + header.scales;
  switch (format.scales) {
    case quantized::Scales::kBlockBytes:
      return f16_to_f32(get<uint16_t>(block + header.block_scales, lane)) *
             static_cast<float>(get<int8_t>(scales, at));
    case quantized::Scales::kF16:
      return f16_to_f32(get<uint16_t>(scales, at));
    case quantized::Scales::kBF16:
      return bf16_to_f32(get<uint16_t>(scales, at));
    case quantized::Scales::kE8m0:
      return e8m0_to_f32(get<uint8_t>(scales, at));
    case quantized::Scales::kF32:
      break;
  }
  return get<float>(scales, at);
}

float minimum_at(const Format& format, const std::byte* block, const QuantizedHeader& header,
                 int64_t lane, int64_t at) {
  if (!format.has_minimums) return 0.0F;
  const std::byte* const minimums = block + header.minimums;
  if (!format.has_block_scales()) return f16_to_f32(get<uint16_t>(minimums, at));
  return f16_to_f32(get<uint16_t>(block + header.block_minimums, lane)) *
         static_cast<float>(get<uint8_t>(minimums, at));
}

}  // namespace

// Computes the same products as dequantize() or write_plain_row(), in the same order.
void QuantizedLinear::unpack_block(const Panel& panel, const std::byte* block, int64_t lane,
                                   int64_t first_group, float* out) const {
  const Format& format = panel.format;
  const int64_t groups = std::min(kGroups, num_groups() - first_group);
  const QuantizedHeader header = quantized_header(format, groups);
  const int64_t first = first_group * kGroupK;
  const int64_t count = std::min(groups * kGroupK, in_features_ - first);
  for (int64_t k = 0; k < count; ++k) {
    const int64_t at = k / format.group_k * kFeatures + lane;
    const int zero = format.has_zeros ? get<uint8_t>(block + header.zeros, at) : format.offset;
    const int bits = value_at(block + header.num_bytes, format.value_bits, k, lane);
    const float value = format.values == QuantizedValues::kE2m1
                            ? e2m1_to_f32(static_cast<uint8_t>(bits))
                            : static_cast<float>(bits - zero);
    const int64_t column = order_.empty() ? first + k : order_[static_cast<size_t>(first + k)];
    out[column] = scale_at(format, block, header, lane, at) * value -
                  minimum_at(format, block, header, lane, at);
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
