#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "tensor/dtype.h"

namespace quire {
namespace {

// Returns the value of a small float by the definition of the format, in double. Infinities and NaN
// are not handled.
double small_float(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1U));
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1U));
  const double sign = ((bits >> (exponent_bits + mantissa_bits)) & 1U) != 0 ? -1.0 : 1.0;
  const double fraction = mantissa / std::exp2(mantissa_bits);
  if (exponent == 0) return sign * fraction * std::exp2(1 - bias);
  return sign * (1.0 + fraction) * std::exp2(exponent - bias);
}

TEST(FloatConvert, EveryBf16IsWidenedExactlyAndRoundsBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    const bool special = (bits & 0x7F80U) == 0x7F80U;
    if (special && (bits & 0x7FU) != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
      continue;
    }
    if (special) {
      EXPECT_TRUE(std::isinf(value));
      EXPECT_EQ(std::signbit(value), bits >= 0x8000U);
    } else {
      ASSERT_EQ(value, small_float(bits, 8, 7));
    }
    ASSERT_EQ(f32_to_bf16(value), bits);
  }
}

TEST(FloatConvert, EveryF16IsWidenedExactlyAndRoundsBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    const bool special = (bits & 0x7C00U) == 0x7C00U;
    if (special && (bits & 0x3FFU) != 0) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      continue;
    }
    if (special) {
      EXPECT_TRUE(std::isinf(value));
    } else {
      ASSERT_EQ(value, small_float(bits, 5, 10));
    }
    ASSERT_EQ(std::signbit(value), bits >= 0x8000U);
    ASSERT_EQ(f32_to_f16(value), bits);
  }
}

TEST(FloatConvert, EveryE4m3IsWidenedExactlyAndRoundsBack) {
  for (uint32_t bits = 0; bits < 0x100; ++bits) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(bits));
    if ((bits & 0x7FU) == 0x7FU) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(f32_to_e4m3(value) & 0x7F, 0x7F);
      continue;
    }
    ASSERT_EQ(value, small_float(bits, 4, 3));
    ASSERT_EQ(std::signbit(value), bits >= 0x80U);
    ASSERT_EQ(f32_to_e4m3(value), bits);
  }
}

// Between two adjacent values of a format the nearer one is chosen, and in the middle the even one.
template <class Narrow, class Widen>
void expect_rounding(uint32_t largest, Narrow narrow, Widen widen) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (uint32_t bits = 0; bits < largest; ++bits) {
    const float low = widen(bits);
    const float high = widen(bits + 1);
    const auto middle = static_cast<float>((static_cast<double>(low) + high) / 2.0);
    ASSERT_GT(middle, low);
    ASSERT_EQ(narrow(middle), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(narrow(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(narrow(std::nextafter(middle, infinity)), bits + 1);
    ASSERT_EQ(narrow(std::nextafter(low, high)), bits);
    ASSERT_EQ(narrow(std::nextafter(high, low)), bits + 1);
  }
}

TEST(FloatConvert, F16RoundsToNearestEven) {
  expect_rounding(0x7BFF, f32_to_f16,
                  [](uint32_t b) { return f16_to_f32(static_cast<uint16_t>(b)); });
}

TEST(FloatConvert, E4m3RoundsToNearestEven) {
  expect_rounding(0x7E, f32_to_e4m3,
                  [](uint32_t b) { return e4m3_to_f32(static_cast<uint8_t>(b)); });
}

TEST(FloatConvert, Bf16RoundsToNearestEven) {
  // Below 0x80 the middle between two subnormals is itself a subnormal F32, which is rounded
  // correctly as well.
  expect_rounding(0x7F7F, f32_to_bf16,
                  [](uint32_t b) { return bf16_to_f32(static_cast<uint16_t>(b)); });
}

TEST(FloatConvert, OverflowIsInfinityOrSaturation) {
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(f32_to_e4m3(448.0F), 0x7E);
  EXPECT_EQ(f32_to_e4m3(1e30F), 0x7E);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::infinity()), 0xFE);
}

TEST(FloatConvert, UnderflowKeepsTheSign) {
  EXPECT_EQ(f32_to_f16(-1e-30F), 0x8000);
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0);  // a tie, to even
  EXPECT_EQ(f32_to_f16(std::nextafter(0x1p-25F, 1.0F)), 1);
  EXPECT_EQ(f32_to_e4m3(-1e-30F), 0x80);
  EXPECT_EQ(f32_to_e4m3(0x1p-10F), 0);
  EXPECT_EQ(f32_to_e4m3(0x1.8p-10F), 1);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
}

}  // namespace
}  // namespace quire
