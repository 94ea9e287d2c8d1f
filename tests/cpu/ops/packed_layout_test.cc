// Later builds read files with packed weights, so the order of the numbers has a version.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/numbers.h"
#include "cpu/ops/amx/kernel.h"
#include "cpu/ops/gemm_amx.h"
#include "cpu/ops/packed_linear.h"
#include "cpu/ops/quantized_linear.h"
#include "support/quantized_matrices.h"
#include "tensor/dtype.h"
#include "tensor/gguf_blocks.h"
#include "tensor/packed_weights.h"

namespace quire::testing {
namespace {

constexpr int64_t kRows = 40;  // no multiple of a panel
constexpr int64_t kColumns = 768;

std::vector<std::byte> some_bytes(size_t count) {
  std::vector<std::byte> bytes(count);
  uint32_t state = 1;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24);
  }
  return bytes;
}

void append(const void* data, size_t num_bytes, std::string& all) {
  all.append(static_cast<const char*>(data), num_bytes);
}

template <typename Packed>
void append_packed(const Packed& linear, std::string& all) {
  append(linear.data(linear.panels().front()), linear.num_bytes(), all);
}

// The packed bytes of a matrix of this type.
std::string packed_blocks(const GgufBlockType& type) {
  ThreadPool pool(1);
  const std::vector<std::byte> numbers = some_bytes(kRows * kColumns * sizeof(float));
  const BlockMatrix matrix = {.type = &type, .bytes = numbers.data(), .shape = {kRows, kColumns}};
  const LinearSource source = {.numbers = MatricesInBlocks{{&matrix, 1}}};
  std::string bytes;
  append_packed(*cpu::QuantizedLinear::pack(source, pool, nullptr).value(), bytes);
  return bytes;
}

// All packed bytes of matrices of every type that is packed, except MXFP4.
std::string packed_bytes() {
  ThreadPool pool(1);
  const std::vector<std::byte> numbers = some_bytes(kRows * kColumns * sizeof(float));
  std::string all;
  for (const GgufBlockType& type : gguf_block_types()) {
    if (!type.plain && !type.is_mxfp4) all += packed_blocks(type);
  }
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    const WeightView matrix(
        TensorView{const_cast<std::byte*>(numbers.data()), dtype, {kRows, kColumns}});
    const auto linear = cpu::PackedLinear::pack({&matrix, 1}, {}, false, pool, nullptr).value();
    append(linear->panel(0), linear->num_bytes(), all);
  }
  return all;
}

// All packed bytes of matrices of integers with every kind of scale, with and without zero points.
std::string packed_integers() {
  ThreadPool pool(1);
  std::string all;
  for (const int bits : {4, 8}) {
    for (const DType scales : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const int64_t group_size : {int64_t{16}, int64_t{128}, kPerRow, kPerTensor}) {
        for (const bool has_zeros : {false, true}) {
          const IntegerMatrix matrix({bits, group_size, has_zeros, scales}, kRows, kColumns, 1);
          const LinearSource source = {.numbers = StoredMatrices{{&matrix.view, 1}}};
          append_packed(*cpu::QuantizedLinear::pack(source, pool, nullptr).value(), all);
        }
      }
    }
  }
  return all;
}

// All packed bytes of FP8 matrices, which are multiplied by their scales.
std::string packed_fp8() {
  ThreadPool pool(1);
  std::vector<std::byte> values = some_bytes(kRows * kColumns);
  for (std::byte& value : values) {
    if ((value & std::byte{0x7F}) == std::byte{0x7F}) value = std::byte{0};  // NaN
  }
  std::string all;
  for (const ScaleLayout layout :
       {ScaleLayout::kTensor, ScaleLayout::kRows, ScaleLayout::kBlocks}) {
    for (const DType plain : {DType::kF32, DType::kBF16}) {
      WeightScheme scheme = {
          .values = DType::kF8E4M3, .scales = layout, .dequantized_dtype = plain};
      if (layout == ScaleLayout::kBlocks) scheme.block_rows = scheme.block_columns = 128;
      const Shape grid = scales_shape(scheme, {kRows, kColumns});
      std::vector<float> scales;
      for (int64_t i = 0; i < grid.num_elements(); ++i) {
        scales.push_back(0.001F * static_cast<float>(i + 1));
      }
      const WeightView matrix({values.data(), DType::kF8E4M3, {kRows, kColumns}},
                              {scales.data(), DType::kF32, grid}, scheme);
      const auto linear = cpu::PackedLinear::pack({&matrix, 1}, {}, false, pool, nullptr).value();
      append(linear->panel(0), linear->num_bytes(), all);
    }
  }
  return all;
}

// F16 numbers below 32, the first ones subnormal.
std::vector<uint16_t> some_halves() {
  std::vector<uint16_t> halves(kRows * kColumns);
  const std::vector<std::byte> bytes = some_bytes(halves.size() * sizeof(uint16_t));
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < halves.size(); ++i) {
    const uint16_t magnitude = halves[i] & 0x7FFFU;
    const uint16_t limit = i < kColumns ? 0x0400 : cpu::kF16PairLimit;
    halves[i] = static_cast<uint16_t>((halves[i] & 0x8000U) | magnitude % limit);
  }
  return halves;
}

// The definition of F16 pairs (cpu/ops/amx/kernel.h) in panels of [K / 2][32][2].
std::string expected_pairs(std::span<const uint16_t> halves) {
  constexpr int64_t kPanel = cpu::kPanelWidth;
  std::vector<uint16_t> panels(round_up(kRows, kPanel) * kColumns);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t k = 0; k < kColumns; ++k) {
      const float value = f16_to_f32(halves[static_cast<size_t>(row * kColumns + k)]);
      const auto bits = std::bit_cast<uint32_t>(value);
      const uint32_t magnitude = bits & 0x7FFFFFFFU;
      const uint32_t pair =
          magnitude == 0 ? 0 : (magnitude - ((127U - cpu::kF16PairBias) << 23)) >> 13;
      const int64_t at = (row / kPanel * kColumns + k / 2 * 2) * kPanel + row % kPanel * 2 + k % 2;
      panels[static_cast<size_t>(at)] = static_cast<uint16_t>((bits >> 16 & 0x8000U) | pair);
    }
  }
  std::string all;
  append(panels.data(), panels.size() * sizeof(uint16_t), all);
  return all;
}

void expect_digest(const std::string& bytes, const std::string& digest) {
  EXPECT_EQ(to_hexadecimal(sha256_of(bytes)), digest)
      << "kernels read another order of packed weights: raise kPackedLayoutVersion, so that files "
         "with the old one are not used, and replace the digest";
}

TEST(PackedLayout, HasAVersion) {
  EXPECT_EQ(kPackedLayoutVersion, 1);
  expect_digest(packed_blocks(*find_gguf_block_type(39)),  // MXFP4
                "6ed27c6164b62cc33a153076bd4c6ce9d5cc4b30bec52c83fd64523014594ce2");
  expect_digest(packed_bytes(), "50035edd1fe3d6aa35d6de987765f96f0668add24f72b80b79617b42c497504a");
  expect_digest(packed_integers(),
                "6dee19b926177d85a57b3178d78120b234f2e37438b1c2601f1fe96b40cff8cd");
  expect_digest(packed_fp8(), "be57b629590af992f08e3049468c41b49a1c962e2ec8597eb469e6fb5a2c8754");
}

TEST(PackedLayout, OfAmxHasAVersion) {
  const std::vector<uint16_t> halves = some_halves();
  const std::string expected = expected_pairs(halves);
  expect_digest(expected, "af9dfffc885c4a45ac10c053383964e1afda88e0111cea94675e080db316f1d8");
  if (!cpu::amx_avx512_usable()) GTEST_SKIP() << "AVX-512 BF16 and VBMI are not usable";
  ThreadPool pool(1);
  const WeightView matrix(
      TensorView{const_cast<uint16_t*>(halves.data()), DType::kF16, {kRows, kColumns}});
  const auto linear = cpu::PackedLinear::pack({&matrix, 1}, {}, true, pool, nullptr).value();
  ASSERT_TRUE(linear->has_f16_pairs());
  std::string packed;
  append(linear->panel(0), linear->num_bytes(), packed);
  EXPECT_TRUE(packed == expected);
}

}  // namespace
}  // namespace quire::testing
