#include "tensor/dtype.h"

#include <array>
#include <cmath>

namespace quire {
namespace {

struct DTypeName {
  DType dtype;
  std::string_view name;
};

// The first name of each type is the one used for output.
constexpr std::array kNames = {
    DTypeName{DType::kF32, "f32"},    DTypeName{DType::kF32, "float32"},
    DTypeName{DType::kF32, "float"},  DTypeName{DType::kF32, "F32"},
    DTypeName{DType::kF16, "f16"},    DTypeName{DType::kF16, "float16"},
    DTypeName{DType::kF16, "half"},   DTypeName{DType::kF16, "F16"},
    DTypeName{DType::kBF16, "bf16"},  DTypeName{DType::kBF16, "bfloat16"},
    DTypeName{DType::kBF16, "BF16"},  DTypeName{DType::kF8E4M3, "fp8_e4m3"},
    DTypeName{DType::kF8E4M3, "fp8"}, DTypeName{DType::kF8E4M3, "F8_E4M3"},
    DTypeName{DType::kI8, "i8"},      DTypeName{DType::kI8, "I8"},
    DTypeName{DType::kI8, "int8"},    DTypeName{DType::kI32, "i32"},
    DTypeName{DType::kI32, "I32"},    DTypeName{DType::kI64, "i64"},
    DTypeName{DType::kI64, "I64"},    DTypeName{DType::kU8, "u8"},
    DTypeName{DType::kU8, "U8"},
};

}  // namespace

size_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
    case DType::kI8:
    case DType::kU8:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kI64:
      return 8;
  }
  return 0;
}

std::string_view dtype_name(DType dtype) {
  for (const DTypeName& entry : kNames) {
    if (entry.dtype == dtype) return entry.name;
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeName& entry : kNames) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

namespace {

// Rounds a magnitude to a format with `mantissa_bits` and smallest normal exponent `min_exponent`,
// in multiples of the format's step at that magnitude. The result is exact in F32.
float round_to_format(float magnitude, int mantissa_bits, int min_exponent) {
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent with f in [0.5, 1)
  const int step_exponent = std::max(exponent - 1, min_exponent) - mantissa_bits;
  const float scaled = std::ldexp(magnitude, -step_exponent);
  return std::ldexp(std::nearbyint(scaled), step_exponent);  // nearbyint: to nearest even
}

}  // namespace

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  const uint32_t round_up = 0x7FFFU + ((bits >> 16) & 1U);
  return static_cast<uint16_t>((bits + round_up) >> 16);
}

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1FU;
  const uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

int8_t f32_to_i8(float value, float scale) {
  if (!(scale > 0)) return 0;
  return static_cast<int8_t>(std::nearbyint(value / scale));
}

uint16_t f32_to_f16(float value) {
  const auto sign = static_cast<uint16_t>((std::bit_cast<uint32_t>(value) >> 16) & 0x8000U);
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU;
  if (magnitude == 0) return sign;
  constexpr uint32_t kLeastNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kOverflow = 0x477FF000;     // 65520, the least number that becomes infinity
  if (magnitude >= kLeastNormal && magnitude < kOverflow) {
    const uint32_t up = magnitude + 0xFFF + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((up - (112U << 23)) >> 13));
  }
  if (std::isnan(value)) return static_cast<uint16_t>(sign | 0x7E00U);
  const float rounded = round_to_format(std::fabs(value), 10, -14);
  if (rounded > 65504.0F) return static_cast<uint16_t>(sign | 0x7C00U);
  if (rounded < 6.103515625e-05F) {
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(rounded, 24)));
  }
  const auto bits = std::bit_cast<uint32_t>(rounded);
  return static_cast<uint16_t>(sign | ((bits - (112U << 23)) >> 13));
}

float e4m3_to_f32(uint8_t bits) {
  const int exponent = (bits >> 3) & 0xF;
  const int mantissa = bits & 0x7;
  if (exponent == 0xF && mantissa == 0x7) return std::nanf("");
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80U) << 24;
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (static_cast<uint32_t>((bits & 0x7FU) + (120U << 3)) << 20));
  }
  const float magnitude = std::ldexp(static_cast<float>(mantissa), -9);
  return sign != 0 ? -magnitude : magnitude;
}

uint8_t f32_to_e4m3(float value) {
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7F);
  if (std::fabs(value) >= 448.0F) return static_cast<uint8_t>(sign | 0x7E);
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7FFFFFFFU;
  constexpr uint32_t kLeastNormal = 0x3C800000;  // 2^-6
  if (magnitude >= kLeastNormal) {
    const uint32_t up = magnitude + 0x7FFFF + ((magnitude >> 20) & 1);
    return static_cast<uint8_t>(sign | ((up - (120U << 23)) >> 20));
  }
  // Up to the least normal number, a number is its code times 2^-9.
  const float rounded = round_to_format(std::fabs(value), 3, -6);
  return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::ldexp(rounded, 9)));
}

}  // namespace quire
