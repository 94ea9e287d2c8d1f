// Compares each type's numbers with those of the `gguf` package (tools/golden/gguf_blocks.py), and
// the errors of the encoders with those of llama.cpp's (tools/golden/gguf_encoders.py).
#include "tensor/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "support/shared_data.h"

namespace quire {
namespace {

std::vector<std::byte> from_hex(const std::string& digits) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

const GgufBlockType* find_by_name(const std::string& name) {
  for (const GgufBlockType& type : gguf_block_types()) {
    if (name == type.name) return &type;
  }
  return nullptr;
}

TEST(GgufBlocks, EqualThoseOfAnotherImplementation) {
  std::ifstream golden(testing::source_path("tests/tensor/golden/gguf_blocks.txt"));
  size_t num_types = 0;
  std::string name;
  std::string packed_hex;
  std::string numbers_hex;
  while (golden >> name >> packed_hex >> numbers_hex) {
    SCOPED_TRACE(name);
    const GgufBlockType* const type = find_by_name(name);
    ASSERT_NE(type, nullptr);
    const std::vector<std::byte> packed = from_hex(packed_hex);
    const std::vector<std::byte> numbers = from_hex(numbers_hex);
    const auto count = numbers.size() / sizeof(float);
    ASSERT_EQ(static_cast<int64_t>(packed.size()) / type->block_bytes * type->block_elements,
              static_cast<int64_t>(count));
    std::vector<float> got(count);
    for (size_t block = 0; block * static_cast<size_t>(type->block_elements) < count; ++block) {
      dequantize(*type, packed.data() + block * static_cast<size_t>(type->block_bytes),
                 got.data() + block * static_cast<size_t>(type->block_elements));
    }
    for (size_t i = 0; i < count; ++i) {
      float expected = 0;
      std::memcpy(&expected, numbers.data() + i * sizeof(float), sizeof(float));
      // The order of the products may differ, so the last bits may.
      ASSERT_NEAR(got[i], expected, 1e-6F * std::abs(expected) + 1e-8F) << i;
    }
    ++num_types;
  }
  EXPECT_EQ(num_types, gguf_block_types().size());
}

std::vector<float> decode(const GgufBlockType& type, const std::vector<std::byte>& packed) {
  const size_t num_blocks = packed.size() / static_cast<size_t>(type.block_bytes);
  const auto elements = static_cast<size_t>(type.block_elements);
  std::vector<float> numbers(num_blocks * elements);
  for (size_t i = 0; i < num_blocks; ++i) {
    dequantize(type, packed.data() + i * static_cast<size_t>(type.block_bytes),
               numbers.data() + i * elements);
  }
  return numbers;
}

std::vector<std::byte> encode(const GgufBlockType& type, const std::vector<float>& numbers) {
  const auto elements = static_cast<size_t>(type.block_elements);
  const auto bytes = static_cast<size_t>(type.block_bytes);
  std::vector<std::byte> packed(numbers.size() / elements * bytes);
  for (size_t i = 0; i * elements < numbers.size(); ++i) {
    quantize(type, numbers.data() + i * elements, packed.data() + i * bytes);
  }
  return packed;
}

double rms_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double squares = 0;
  for (size_t i = 0; i < got.size(); ++i) squares += std::pow(double{got[i]} - expected[i], 2);
  return std::sqrt(squares / static_cast<double>(got.size()));
}

TEST(GgufEncoders, ErrAtMostTwoPercentMoreThanLlamaCpp) {
  std::ifstream golden(testing::source_path("tests/tensor/golden/gguf_encoders.txt"));
  std::string type_name;
  std::string distribution;
  std::string hex;
  std::vector<float> numbers;
  size_t num_compared = 0;
  while (golden >> type_name >> distribution >> hex) {
    SCOPED_TRACE(type_name + " " + distribution);
    const std::vector<std::byte> bytes = from_hex(hex);
    if (type_name == "numbers") {
      numbers.resize(bytes.size() / sizeof(float));
      std::memcpy(numbers.data(), bytes.data(), bytes.size());
      continue;
    }
    const GgufBlockType* const type = find_by_name(type_name);
    ASSERT_NE(type, nullptr);
    ASSERT_TRUE(can_quantize(*type));
    const double reference = rms_error(decode(*type, bytes), numbers);
    EXPECT_LE(rms_error(decode(*type, encode(*type, numbers)), numbers), 1.02 * reference);
    ++num_compared;
  }
  EXPECT_EQ(num_compared, 7 * 6);
}

TEST(GgufEncoders, KeepTheNumbersOfEveryScale) {
  for (const GgufBlockType& type : gguf_block_types()) {
    if (!can_quantize(type)) continue;
    SCOPED_TRACE(type.name);
    for (const float scale : {1e-30F, 1e-6F, 1e-3F, 1.0F, 1000.0F}) {
      std::vector<float> numbers(256);
      for (size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] = scale * std::sin(static_cast<float>(i * i));
      }
      const std::vector<float> got = decode(type, encode(type, numbers));
      // F16 numbers, and the scales of blocks, are multiples of 6e-8: numbers below 3e-8 are zeros.
      const bool has_f16 = type.plain.value_or(DType::kF16) == DType::kF16;
      if (has_f16 && scale == 1e-30F) {
        EXPECT_EQ(got, std::vector<float>(numbers.size()));
        continue;
      }
      const double least = has_f16 && scale < 1e-3F ? 1e-6 : 0.0;
      EXPECT_LE(rms_error(got, numbers), 0.07 * double{scale} + least) << scale;
    }
  }
}

TEST(GgufEncoders, WriteTheBytesThatTheirReadersTakeApart) {
  // Integers times a power of 2 are exact in every type that has as many bits.
  for (const char* name : {"Q8_0", "Q5_0", "Q5_1", "Q5_K", "Q6_K", "Q4_0", "Q4_K"}) {
    SCOPED_TRACE(name);
    const GgufBlockType& type = *find_by_name(name);
    std::vector<float> numbers(256);
    const int most = type.has_minimums ? (1 << type.value_bits) - 1 : type.offset;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const int integer = static_cast<int>(i * 7 % static_cast<size_t>(most + 1));
      // Each group has both extremes, so that the step is 1 / 4 for all groups.
      const int value = i % 16 == 0 ? most : i % 16 == 1 ? 0 : integer;
      numbers[i] = 0.25F * static_cast<float>(type.has_minimums ? value : -value);
    }
    if (std::string(name) == "Q8_0") {
      for (float& x : numbers) x = std::max(x, -0.25F * 127);
    }
    const std::vector<float> got = decode(type, encode(type, numbers));
    for (size_t i = 0; i < numbers.size(); ++i) ASSERT_NEAR(got[i], numbers[i], 0.02F) << i;
  }
}

// The numbers of a block without a loss, if a power of two makes them integers.
TEST(GgufEncoders, KeepIntegersTimesAPowerOfTwoExactInQ8_0) {
  const GgufBlockType& type = *find_by_name("Q8_0");
  for (const int exponent : {-24, -23, -9, 0, 8}) {
    for (const int most : {1, 64, 65, 126, 127}) {
      SCOPED_TRACE(std::to_string(most) + " * 2^" + std::to_string(exponent));
      std::vector<float> numbers(256);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const int integer = static_cast<int>(i * 37 % static_cast<size_t>(2 * most + 1)) - most;
        numbers[i] = std::ldexp(static_cast<float>(i % 32 == 5 ? -most : integer), exponent);
      }
      EXPECT_EQ(decode(type, encode(type, numbers)), numbers);
      // One number between two of the integers: the largest number determines the scale.
      numbers[3] = std::ldexp(static_cast<float>(most) - 0.5F, exponent);
      const std::vector<float> got = decode(type, encode(type, numbers));
      if (most == 127 && exponent > -15) {
        EXPECT_NE(got[3], numbers[3]);
        EXPECT_NEAR(got[5], numbers[5], 1e-3F * std::abs(numbers[5]));
      }
    }
  }
  EXPECT_EQ(encode(type, std::vector<float>(32)), std::vector<std::byte>(34));
}

// Every code at the edges of the exponents. Numbers above F32's are infinities, as in the products
// of floating-point numbers that they stand for.
TEST(GgufBlocks, OfMxfp4HaveAllCodesAndExponents) {
  constexpr double kMagnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  const GgufBlockType& type = *find_by_name("MXFP4");
  for (const int exponent : {0, 1, 2, 126, 127, 128, 253, 254, 255}) {
    std::vector<std::byte> block(17);
    block[0] = static_cast<std::byte>(exponent);
    for (size_t i = 0; i < 16; ++i) block[1 + i] = static_cast<std::byte>(i | (15 - i) << 4);
    std::vector<float> got(32);
    dequantize(type, block.data(), got.data());
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t code = i < 16 ? i : 31 - i;
      const double magnitude = std::ldexp(kMagnitudes[code % 8], exponent - 127);
      const double want = code < 8 ? magnitude : -magnitude;
      if (exponent == 255) {
        EXPECT_TRUE(std::isnan(got[i]));
      } else {
        EXPECT_EQ(got[i], static_cast<float>(want)) << exponent << " " << code;
      }
    }
  }
}

TEST(GgufBlocks, TypesHaveNames) {
  EXPECT_EQ(gguf_type_name(12), "Q4_K");
  EXPECT_EQ(gguf_type_name(39), "MXFP4");
  EXPECT_EQ(gguf_type_name(1000), "type 1000");
  EXPECT_EQ(gguf_type_name(40), "NVFP4");
  EXPECT_EQ(find_gguf_block_type(40), nullptr);
}

}  // namespace
}  // namespace quire
