#include "support/gguf_quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "support/gguf_bytes.h"
#include "tensor/dtype.h"

namespace quire::testing {
namespace {

// The number whose magnitude is the largest.
float extreme(std::span<const float> values) {
  return *std::ranges::max_element(values, {}, [](float value) { return std::abs(value); });
}

// value / step, rounded into [least, most].
int steps_of(float value, float step, int least, int most) {
  const float steps = step == 0.0F ? 0.0F : std::round(value / step);
  return static_cast<int>(std::clamp(steps, static_cast<float>(least), static_cast<float>(most)));
}

// `value` as F16, appended to the block; returns what F16 keeps of it.
float append_half(float value, std::string& block) {
  const uint16_t half = f32_to_f16(value);
  block += GgufWriter::raw(half);
  return f16_to_f32(half);
}

void pack_q8_0(std::span<const float> values, std::string& block) {
  const float step = append_half(std::abs(extreme(values)) / 127, block);
  for (const float value : values) block += static_cast<char>(steps_of(value, step, -127, 127));
}

void pack_q4_0(std::span<const float> values, std::string& block) {
  const float step = append_half(extreme(values) / -8, block);
  const auto bits = [&](size_t i) { return steps_of(values[i], step, -8, 7) + 8; };
  for (size_t i = 0; i < 16; ++i) block += static_cast<char>(bits(i) | (bits(i + 16) << 4));
}

// 8 scales and 8 minimums of 6 bits in 12 bytes.
std::string pack_scales(const std::array<int, 8>& scales, const std::array<int, 8>& minimums) {
  std::string bytes;
  for (const auto& numbers : {scales, minimums}) {
    for (size_t i = 0; i < 4; ++i) {
      bytes += static_cast<char>(numbers[i] | ((numbers[i + 4] >> 4) << 6));
    }
  }
  for (size_t i = 4; i < 8; ++i) {
    bytes += static_cast<char>((scales[i] & 0xF) | ((minimums[i] & 0xF) << 4));
  }
  return bytes;
}

void pack_q4_k(std::span<const float> values, std::string& block) {
  std::array<float, 8> steps = {};
  std::array<float, 8> minimums = {};
  for (size_t group = 0; group < 8; ++group) {
    const auto [least, most] = std::ranges::minmax(values.subspan(32 * group, 32));
    minimums[group] = std::max(0.0F, -least);
    steps[group] = (std::max(most, 0.0F) + minimums[group]) / 15;
  }
  const float scale = append_half(std::ranges::max(steps) / 63, block);
  const float minimum_scale = append_half(std::ranges::max(minimums) / 63, block);
  std::array<int, 8> scale_bits = {};
  std::array<int, 8> minimum_bits = {};
  for (size_t group = 0; group < 8; ++group) {
    scale_bits[group] = steps_of(steps[group], scale, 0, 63);
    minimum_bits[group] = steps_of(minimums[group], minimum_scale, 0, 63);
  }
  block += pack_scales(scale_bits, minimum_bits);
  const auto bits = [&](size_t i) {
    const float minimum = minimum_scale * static_cast<float>(minimum_bits[i / 32]);
    return steps_of(values[i] + minimum, scale * static_cast<float>(scale_bits[i / 32]), 0, 15);
  };
  for (size_t pair = 0; pair < 4; ++pair) {
    for (size_t i = 64 * pair; i < 64 * pair + 32; ++i) {
      block += static_cast<char>(bits(i) | (bits(i + 32) << 4));
    }
  }
}

void pack_q6_k(std::span<const float> values, std::string& block) {
  std::array<float, 16> steps = {};
  for (size_t group = 0; group < 16; ++group) {
    steps[group] = std::abs(extreme(values.subspan(16 * group, 16))) / 31;
  }
  std::string end;
  const float scale = append_half(std::ranges::max(steps) / 127, end);
  std::array<int, 16> scale_bits = {};
  for (size_t group = 0; group < 16; ++group) {
    scale_bits[group] = steps_of(steps[group], scale, 0, 127);
  }
  const auto bits = [&](size_t i) {
    return steps_of(values[i], scale * static_cast<float>(scale_bits[i / 16]), -32, 31) + 32;
  };
  for (size_t half = 0; half < 256; half += 128) {
    for (size_t i = half; i < half + 64; ++i) {
      block += static_cast<char>((bits(i) & 0xF) | ((bits(i + 64) & 0xF) << 4));
    }
  }
  for (size_t half = 0; half < 256; half += 128) {
    for (size_t i = half; i < half + 32; ++i) {
      block += static_cast<char>((bits(i) >> 4) | ((bits(i + 32) >> 4) << 2) |
                                 ((bits(i + 64) >> 4) << 4) | ((bits(i + 96) >> 4) << 6));
    }
  }
  for (const int number : scale_bits) block += static_cast<char>(number);
  block += end;
}

}  // namespace

const GgufBlockType& gguf_type(std::string_view name) {
  const auto found = std::ranges::find_if(
      gguf_block_types(), [&](const GgufBlockType& type) { return type.name == name; });
  if (found == gguf_block_types().end()) std::abort();
  return *found;
}

std::string quantize(const GgufBlockType& type, std::span<const float> values) {
  const std::string_view name = type.name;
  const auto pack = name == "Q8_0"   ? pack_q8_0
                    : name == "Q4_0" ? pack_q4_0
                    : name == "Q4_K" ? pack_q4_k
                    : name == "Q6_K" ? pack_q6_k
                                     : nullptr;
  if (pack == nullptr) std::abort();
  std::string bytes;
  const auto block_elements = static_cast<size_t>(type.block_elements);
  for (size_t at = 0; at < values.size(); at += block_elements) {
    pack(values.subspan(at, block_elements), bytes);
  }
  return bytes;
}

}  // namespace quire::testing
