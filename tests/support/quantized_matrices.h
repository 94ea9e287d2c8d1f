// Random matrices of quantized blocks and of integers with scales, and the numbers that they stand
// for, for tests of products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "ops/weight_store.h"
#include "tensor/dtype.h"
#include "tensor/gguf_blocks.h"
#include "tensor/weight_source.h"

namespace quire::testing {

inline std::vector<GgufBlockType> quantized_types() {
  std::vector<GgufBlockType> types;
  for (const GgufBlockType& type : gguf_block_types()) {
    if (!type.plain) types.push_back(type);
  }
  return types;
}

// The bytes that a store keeps per block of this type.
inline int64_t block_bytes(const WeightStore& store, const GgufBlockType& type) {
  return store.quantized_bytes({{1, type.block_elements}, &type});
}

// The offsets of the F16 numbers of a block, in bytes.
inline std::vector<size_t> half_offsets(const GgufBlockType& type) {
  const std::string name = type.name;
  if (name == "Q6_K") return {208};
  if (name == "Q3_K") return {108};
  if (name == "Q2_K") return {80, 82};
  if (type.has_minimums) return {0, 2};
  return {0};
}

// A matrix of random blocks, and the numbers that they stand for: scale * integer - minimum, with
// the sizes of these terms.
struct GgufMatrix {
  int64_t n;
  int64_t k;
  GgufBlockType type;
  std::vector<std::byte> bytes;
  std::vector<float> values;
  std::vector<float> magnitudes;
  std::vector<float> scales;    // per number
  std::vector<float> minimums;  // per number

  BlockMatrix view() const {
    BlockMatrix view;
    view.type = &type;
    view.bytes = bytes.data();
    view.shape = {n, k};
    return view;
  }
};

// A block of MXFP4 with random codes. One of 32 is so small or so large that F32 has other bits for
// its scale, or that its products are near the limits.
inline std::vector<std::byte> mxfp4_block(const GgufBlockType& type, std::mt19937& random) {
  constexpr uint8_t kEdges[] = {0, 1, 2, 3};
  std::vector<std::byte> block(static_cast<size_t>(type.block_bytes));
  for (std::byte& byte : block) byte = static_cast<std::byte>(random());
  block[0] = static_cast<std::byte>(random() % 32 == 0 ? kEdges[random() % 4] : 112 + random() % 8);
  return block;
}

inline std::vector<std::byte> scaled_block(const GgufBlockType& type, std::mt19937& random) {
  std::vector<std::byte> block(static_cast<size_t>(type.block_bytes));
  for (std::byte& byte : block) byte = static_cast<std::byte>(random());
  for (const size_t offset : half_offsets(type)) {
    const float value = 1e-3F * static_cast<float>(1 + random() % 50);
    const uint16_t half = f32_to_f16(random() % 8 == 0 ? -value : value);
    std::memcpy(block.data() + offset, &half, sizeof(half));
  }
  return block;
}

inline void append_block(GgufMatrix& m, std::mt19937& random) {
  const std::vector<std::byte> block =
      m.type.is_mxfp4 ? mxfp4_block(m.type, random) : scaled_block(m.type, random);
  const size_t first = m.values.size();
  const auto count = static_cast<size_t>(m.type.block_elements);
  m.values.resize(first + count);
  dequantize(m.type, block.data(), m.values.data() + first);
  QuantizedBlock parts;
  m.type.read(block.data(), parts);
  for (size_t i = 0; i < count; ++i) {
    if (m.type.is_mxfp4) {
      constexpr float kMostE2m1 = 6.0F;
      m.scales.push_back(e8m0_to_f32(static_cast<uint8_t>(parts.scale)));
      m.minimums.push_back(0.0F);
      m.magnitudes.push_back(m.scales.back() * 2 * kMostE2m1);
      continue;
    }
    const size_t group = i / static_cast<size_t>(m.type.group_elements);
    const float scale = f16_to_f32(parts.scale) * static_cast<float>(parts.group_scales[group]);
    const float minimum =
        f16_to_f32(parts.minimum) * static_cast<float>(parts.group_minimums[group]);
    m.magnitudes.push_back(std::fabs(scale) * static_cast<float>(parts.values[i] + m.type.offset) +
                           std::fabs(minimum));
    m.scales.push_back(scale);
    m.minimums.push_back(minimum);
  }
  m.bytes.insert(m.bytes.end(), block.begin(), block.end());
}

inline GgufMatrix random_matrix(const GgufBlockType& type, int64_t n, int64_t k, uint32_t seed) {
  GgufMatrix m = {.n = n,
                  .k = k,
                  .type = type,
                  .bytes = {},
                  .values = {},
                  .magnitudes = {},
                  .scales = {},
                  .minimums = {}};
  std::mt19937 random(seed);
  for (int64_t i = 0; i < n * k / type.block_elements; ++i) append_block(m, random);
  return m;
}

inline constexpr int64_t kPerTensor = 0;  // instead of a group size
inline constexpr int64_t kPerRow = -1;

struct IntegerSpec {
  int bits = 4;
  int64_t group_size = 128;  // or one of the above
  bool has_zeros = false;
  DType scales = DType::kF16;
  bool has_order = false;
};

inline WeightScheme scheme_of(const IntegerSpec& spec) {
  WeightScheme scheme = {.values = DType::kI8, .scales = ScaleLayout::kBlocks};
  if (spec.group_size == kPerTensor) scheme.scales = ScaleLayout::kTensor;
  if (spec.group_size == kPerRow) scheme.scales = ScaleLayout::kRows;
  if (spec.group_size > 0) {
    scheme.block_rows = 1;
    scheme.block_columns = spec.group_size;
  }
  scheme.bits = spec.bits;
  scheme.has_zeros = spec.has_zeros;
  return scheme;
}

inline std::string describe(const IntegerSpec& spec) {
  return quire::describe(scheme_of(spec)) + " " + std::string(dtype_name(spec.scales)) +
         (spec.has_order ? " in an order" : "");
}

// A matrix of random integers, and the numbers that it stands for.
struct IntegerMatrix {
  IntegerMatrix(const IntegerSpec& spec, int64_t n_, int64_t k_, uint32_t seed) : n(n_), k(k_) {
    const WeightScheme scheme = scheme_of(spec);
    const Shape shape = {n, k};
    const Shape num_scales = scales_shape(scheme, shape);
    std::mt19937 random(seed);
    const int range = 1 << spec.bits;
    const auto integer = [&] { return static_cast<int8_t>(int(random() % range) - range / 2); };
    for (int64_t i = 0; i < n * k; ++i) values.push_back(integer());
    for (int64_t i = 0; i < num_scales.num_elements(); ++i) {
      zeros.push_back(integer());
      add_scale(spec.scales,
                1e-3F * static_cast<float>(1 + random() % 50) * (random() % 8 == 0 ? -1.0F : 1.0F));
    }
    view = WeightView({values.data(), DType::kI8, shape}, {scales.data(), spec.scales, num_scales},
                      scheme);
    if (spec.has_zeros) view.zeros = {zeros.data(), DType::kI8, num_scales};
    if (spec.has_order) {
      order.resize(static_cast<size_t>(k));
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      view.order = {order.data(), DType::kI32, {k}};
    }
    plain.resize(static_cast<size_t>(n * k));
    write_plain();
  }

  // Only of F16 scales.
  void multiply_scales(float factor) {
    auto* const all = reinterpret_cast<uint16_t*>(scales.data());
    for (size_t i = 0; i < scales.size() / sizeof(uint16_t); ++i) {
      all[i] = f32_to_f16(f16_to_f32(all[i]) * factor);
    }
    write_plain();
  }

  void write_plain() {
    for (int64_t row = 0; row < n; ++row) {
      write_plain_row(view, row, reinterpret_cast<std::byte*>(plain.data() + row * k));
    }
  }

  void add_scale(DType dtype, float scale) {
    const auto append = [&](const void* bytes, size_t count) {
      const auto* const from = static_cast<const std::byte*>(bytes);
      scales.insert(scales.end(), from, from + count);
    };
    // BF16 has scales that F16 does not.
    const uint16_t half = dtype == DType::kF16 ? f32_to_f16(scale) : f32_to_bf16(scale * 1e-20F);
    dtype == DType::kF32 ? append(&scale, sizeof(scale)) : append(&half, sizeof(half));
  }

  int64_t n;
  int64_t k;
  std::vector<int8_t> values;
  std::vector<std::byte> scales;
  std::vector<int8_t> zeros;
  std::vector<int32_t> order;
  WeightView view;
  std::vector<float> plain;
};

}  // namespace quire::testing
