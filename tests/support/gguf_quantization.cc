#include "support/gguf_quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <map>
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

// Appends 4 bits of each of 32 elements: the lower halves of 16 bytes hold the first 16.
void append_nibbles(const auto& bits, std::string& block) {
  for (size_t i = 0; i < 16; ++i) block += static_cast<char>(bits(i) | (bits(i + 16) << 4));
}

void pack_q4_0(std::span<const float> values, std::string& block) {
  const float step = append_half(extreme(values) / -8, block);
  const auto bits = [&](size_t i) { return steps_of(values[i], step, -8, 7) + 8; };
  append_nibbles(bits, block);
}

// The exponent by which the largest number is at most 6, or just above.
void pack_mxfp4(std::span<const float> values, std::string& block) {
  const float most = std::abs(extreme(values));
  const int exponent = most == 0.0F ? 0 : std::clamp(std::ilogb(most) - 2, -127, 127);
  block += static_cast<char>(exponent + 127);
  const auto bits = [&](size_t i) {
    const float number = std::ldexp(values[i], -exponent);
    int best = 0;
    for (int code = 1; code < 16; ++code) {
      const auto error = [&](int of) {
        return std::abs(e2m1_to_f32(static_cast<uint8_t>(of)) - number);
      };
      if (error(code) < error(best)) best = code;
    }
    return best;
  };
  append_nibbles(bits, block);
}

void pack_q4_1(std::span<const float> values, std::string& block) {
  const auto [least, most] = std::ranges::minmax(values);
  const float step = append_half((most - least) / 15, block);
  const float minimum = append_half(least, block);
  const auto bits = [&](size_t i) { return steps_of(values[i] - minimum, step, 0, 15); };
  append_nibbles(bits, block);
}

// The values that the 4 bits of IQ4_NL and IQ4_XS stand for.
constexpr std::array<int, 16> kNonlinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

// Appends the 4 bits of 32 elements that are `step` times one of these values.
void append_nonlinear(std::span<const float> values, float step, std::string& block) {
  const auto bits = [&](size_t i) {
    const float steps = step == 0.0F ? 0.0F : values[i] / step;
    const auto distance = [&](int value) { return std::abs(static_cast<float>(value) - steps); };
    return std::ranges::min_element(kNonlinear, {}, distance) - kNonlinear.begin();
  };
  append_nibbles(bits, block);
}

void pack_iq4_nl(std::span<const float> values, std::string& block) {
  const float step = append_half(extreme(values) / kNonlinear.front(), block);
  append_nonlinear(values, step, block);
}

void pack_iq4_xs(std::span<const float> values, std::string& block) {
  std::array<float, 8> steps = {};
  for (size_t group = 0; group < 8; ++group) {
    steps[group] = extreme(values.subspan(32 * group, 32)) / kNonlinear.front();
  }
  const float scale = append_half(std::abs(extreme(steps)) / 31, block);
  unsigned upper_bits = 0;
  std::string lower_bits(4, '\0');
  std::string elements;
  for (size_t group = 0; group < 8; ++group) {
    const int scale_bits = steps_of(steps[group], scale, -31, 31);
    const auto stored = static_cast<unsigned>(scale_bits + 32);
    upper_bits |= (stored >> 4) << (2 * group);
    lower_bits[group / 2] |= static_cast<char>((stored & 0xF) << (4 * (group % 2)));
    append_nonlinear(values.subspan(32 * group, 32), scale * static_cast<float>(scale_bits),
                     elements);
  }
  block += GgufWriter::raw(static_cast<uint16_t>(upper_bits)) + lower_bits + elements;
}

// Appends 2 of the bits of 256 elements, from bit `first` on: 32 bytes hold 4 runs of 32 elements.
void append_two_bits(const std::array<int, 256>& bits, int first, std::string& block) {
  for (size_t half = 0; half < 256; half += 128) {
    for (size_t i = half; i < half + 32; ++i) {
      int byte = 0;
      for (size_t run = 0; run < 4; ++run) byte |= ((bits[i + 32 * run] >> first) & 3) << (2 * run);
      block += static_cast<char>(byte);
    }
  }
}

void pack_q2_k(std::span<const float> values, std::string& block) {
  std::array<float, 16> steps = {};
  std::array<float, 16> minimums = {};
  for (size_t group = 0; group < 16; ++group) {
    const auto [least, most] = std::ranges::minmax(values.subspan(16 * group, 16));
    minimums[group] = std::max(0.0F, -least);
    steps[group] = (std::max(most, 0.0F) + minimums[group]) / 3;
  }
  std::string end;
  const float scale = append_half(std::ranges::max(steps) / 15, end);
  const float minimum_scale = append_half(std::ranges::max(minimums) / 15, end);
  std::array<int, 256> bits = {};
  for (size_t group = 0; group < 16; ++group) {
    const int scale_bits = steps_of(steps[group], scale, 0, 15);
    const int minimum_bits = steps_of(minimums[group], minimum_scale, 0, 15);
    block += static_cast<char>(scale_bits | (minimum_bits << 4));
    for (size_t i = 16 * group; i < 16 * group + 16; ++i) {
      const float minimum = minimum_scale * static_cast<float>(minimum_bits);
      bits[i] = steps_of(values[i] + minimum, scale * static_cast<float>(scale_bits), 0, 3);
    }
  }
  append_two_bits(bits, 0, block);
  block += end;
}

void pack_q3_k(std::span<const float> values, std::string& block) {
  std::array<float, 16> steps = {};
  for (size_t group = 0; group < 16; ++group) {
    steps[group] = extreme(values.subspan(16 * group, 16)) / -4;
  }
  std::string end;
  const float scale = append_half(std::abs(extreme(steps)) / 31, end);
  std::string scales(12, '\0');
  std::array<int, 256> bits = {};
  for (size_t group = 0; group < 16; ++group) {
    const int scale_bits = steps_of(steps[group], scale, -31, 31);
    const auto stored = static_cast<unsigned>(scale_bits + 32);
    scales[group % 8] |= static_cast<char>((stored & 0xF) << (4 * (group / 8)));
    scales[8 + group % 4] |= static_cast<char>((stored >> 4) << (2 * (group / 4)));
    for (size_t i = 16 * group; i < 16 * group + 16; ++i) {
      bits[i] = steps_of(values[i], scale * static_cast<float>(scale_bits), -4, 3) + 4;
    }
  }
  for (size_t i = 0; i < 32; ++i) {
    int third_bits = 0;
    for (size_t run = 0; run < 8; ++run) third_bits |= (bits[i + 32 * run] >> 2) << run;
    block += static_cast<char>(third_bits);
  }
  append_two_bits(bits, 0, block);
  block += scales + end;
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
  std::array<int, 256> bits = {};
  for (size_t i = 0; i < 256; ++i) {
    bits[i] = steps_of(values[i], scale * static_cast<float>(scale_bits[i / 16]), -32, 31) + 32;
  }
  for (size_t half = 0; half < 256; half += 128) {
    for (size_t i = half; i < half + 64; ++i) {
      block += static_cast<char>((bits[i] & 0xF) | ((bits[i + 64] & 0xF) << 4));
    }
  }
  append_two_bits(bits, 4, block);
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
  using Pack = void (*)(std::span<const float> values, std::string & block);
  static const std::map<std::string_view, Pack> packs = {
      {"Q8_0", pack_q8_0},     {"Q4_0", pack_q4_0},  {"Q4_1", pack_q4_1}, {"Q2_K", pack_q2_k},
      {"Q3_K", pack_q3_k},     {"Q4_K", pack_q4_k},  {"Q6_K", pack_q6_k}, {"IQ4_NL", pack_iq4_nl},
      {"IQ4_XS", pack_iq4_xs}, {"MXFP4", pack_mxfp4}};
  const auto pack = packs.find(type.name);
  std::string bytes;
  const auto block_elements = static_cast<size_t>(type.block_elements);
  for (size_t at = 0; at < values.size(); at += block_elements) {
    if (pack != packs.end()) {
      pack->second(values.subspan(at, block_elements), bytes);
      continue;
    }
    std::string block(static_cast<size_t>(type.block_bytes), '\0');
    quire::quantize(type, &values[at], reinterpret_cast<std::byte*>(block.data()));
    bytes += block;
  }
  return bytes;
}

}  // namespace quire::testing
