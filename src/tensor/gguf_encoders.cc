#include "tensor/gguf_encoders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

#include "tensor/dtype.h"

namespace quire {
namespace {

constexpr int kMaxPackedScale = 63;  // the scales and minimums of Q4_K and Q5_K have 6 bits

// The nearest integer, ties to even, of a number below 2^22: adding 1.5 * 2^23 leaves no bits for a
// fraction. Several times as fast as std::nearbyint, which is a call.
float nearest(float x) {
  constexpr float kNoFraction = 12582912.0F;
  return (x + kNoFraction) - kNoFraction;
}

float round_and_clamp(float x, float least, float most) {
  return nearest(std::clamp(x, least, most));
}

float inverse(float x) {
  return x == 0 ? 0.0F : 1.0F / x;
}

std::byte to_byte(float integer) {
  return static_cast<std::byte>(static_cast<int>(integer));
}

// Writes an F16 number and returns its value.
float store_f16(float value, std::byte* out) {
  const uint16_t bits = f32_to_f16(value);
  std::memcpy(out, &bits, sizeof(bits));
  return f16_to_f32(bits);
}

// The number of the largest magnitude, with its sign.
float extreme_of(std::span<const float> numbers) {
  return *std::ranges::max_element(numbers, {}, [](float x) { return std::abs(x); });
}

// The smallest power of two in F16 for which no number up to `largest`, divided by it, exceeds
// `most`.
float power_of_two_scale(float largest, float most) {
  constexpr int kLeastF16 = -24;
  constexpr int kMostF16 = 15;
  int exponent = 0;
  const bool is_power = std::frexp(largest / most, &exponent) == 0.5F;
  return std::ldexp(1.0F, std::clamp(is_power ? exponent - 1 : exponent, kLeastF16, kMostF16));
}

// Whether the block stores all of these numbers exactly with this scale, a power of two.
bool is_exact(std::span<const float> numbers, float scale, float most) {
  const float steps = 1.0F / scale;
  return std::ranges::all_of(numbers, [&](float x) {
    const float q = x * steps;
    return std::abs(q) <= most && q == nearest(q);
  });
}

using SmallValues = std::array<uint8_t, kSmallBlock>;

// The first 16 elements are the low halves of 16 bytes, the others the high halves.
void pack_nibbles(const SmallValues& values, std::byte* out) {
  for (size_t i = 0; i < kSmallBlock / 2; ++i) {
    out[i] = static_cast<std::byte>((values[i] & 0xF) | ((values[i + 16] & 0xF) << 4));
  }
}

// The fifth bit of element i is bit i of a number of 32 bits.
void pack_fifth_bits(const SmallValues& values, std::byte* out) {
  uint32_t bits = 0;
  for (size_t i = 0; i < kSmallBlock; ++i) bits |= static_cast<uint32_t>(values[i] >> 4) << i;
  std::memcpy(out, &bits, sizeof(bits));
}

// Stores the scale with which the number of the largest magnitude becomes -offset; the integers
// have no +offset. Returns the integers plus offset.
SmallValues quantize_signed(const float* numbers, int offset, std::byte* scale_out) {
  const auto least = static_cast<float>(-offset);
  const float scale = store_f16(extreme_of({numbers, kSmallBlock}) / least, scale_out);
  const float steps = inverse(scale);
  SmallValues values;
  for (size_t i = 0; i < kSmallBlock; ++i) {
    const float value = round_and_clamp(numbers[i] * steps, least, -least - 1);
    values[i] = static_cast<uint8_t>(static_cast<int>(value) + offset);
  }
  return values;
}

// A line value -> scale * value + minimum for the integers from 0 to most, and its squared error.
struct Line {
  float scale = 0;
  float minimum = 0;  // at most 0
  float error = 0;    // without the part that all lines of the group share
};

struct Group {
  std::span<const float> numbers;
  std::span<const float> weights;
  float most;  // the largest integer
};

// A sum in independent parts, so that the compiler adds several numbers per instruction.
class Sum {
 public:
  static constexpr size_t kNumParts = 8;

  float& part(size_t i) { return parts_[i]; }
  float total() const { return std::accumulate(parts_.begin(), parts_.end(), 0.0F); }

 private:
  std::array<float, kNumParts> parts_ = {};
};

// Rounds (x - lowest) * steps to integers, and returns their line with the least weighted error.
Line fit_line(const Group& group, float lowest, float steps) {
  Sum w_sum;
  Sum x_sum;
  Sum q_sum;
  Sum qq_sum;
  Sum xq_sum;
  for (size_t first = 0; first < group.numbers.size(); first += Sum::kNumParts) {
    for (size_t i = 0; i < Sum::kNumParts; ++i) {
      const float x = group.numbers[first + i];
      const float w = group.weights[first + i];
      const float q = round_and_clamp((x - lowest) * steps, 0, group.most);
      w_sum.part(i) += w;
      x_sum.part(i) += w * x;
      q_sum.part(i) += w * q;
      qq_sum.part(i) += w * q * q;
      xq_sum.part(i) += w * x * q;
    }
  }
  const float sum_w = w_sum.total();
  const float sum_x = x_sum.total();
  const float sum_q = q_sum.total();
  const float sum_qq = qq_sum.total();
  const float sum_xq = xq_sum.total();
  const float determinant = sum_w * sum_qq - sum_q * sum_q;
  Line line;
  if (determinant > 0) {
    line.scale = (sum_w * sum_xq - sum_x * sum_q) / determinant;
    line.minimum = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
  }
  if (determinant <= 0 || line.minimum > 0) {
    line.minimum = 0;
    line.scale = sum_xq * inverse(sum_qq);
  }
  line.error = -(line.scale * sum_xq + line.minimum * sum_x);
  return line;
}

// Tries several numbers of steps near `most`, which covers the range exactly: cutting the extremes
// off, or leaving room, often halves the other errors.
Line best_line(const Group& group) {
  constexpr int kNumTries = 21;
  constexpr int kNumRepeats = 4;
  constexpr float kTryStep = 0.1F;
  const auto [least, largest] = std::ranges::minmax(group.numbers);
  const float lowest = std::min(least, 0.0F);
  Line best;
  best.minimum = lowest;
  if (largest <= lowest) return best;
  for (int i = 0; i < kNumTries; ++i) {
    const float steps = group.most + kTryStep * static_cast<float>(i - kNumTries / 2);
    const Line line = fit_line(group, lowest, steps / (largest - lowest));
    if (i == 0 || line.error < best.error) best = line;
  }
  // Rounding by the best line may give integers with a better line.
  for (int i = 0; i < kNumRepeats && best.scale > 0; ++i) {
    const Line line = fit_line(group, best.minimum, 1.0F / best.scale);
    if (line.error >= best.error) break;
    best = line;
  }
  return best;
}

// Packs 6 bits of 8 scales and 8 minimums into 12 bytes, as set_packed_scales() reads them.
void pack_scales(const std::array<uint8_t, 8>& scales, const std::array<uint8_t, 8>& minimums,
                 std::byte* out) {
  for (size_t i = 0; i < 4; ++i) {
    out[i] = static_cast<std::byte>(scales[i] | ((scales[i + 4] >> 4) << 6));
    out[i + 4] = static_cast<std::byte>(minimums[i] | ((minimums[i + 4] >> 4) << 6));
    out[i + 8] = static_cast<std::byte>((scales[i + 4] & 0xF) | ((minimums[i + 4] & 0xF) << 4));
  }
}

using SuperValues = std::array<uint8_t, kSuperBlock>;

// Writes the 16 bytes of scales of a Q4_K or Q5_K block, and returns its integers from 0 to `most`.
SuperValues quantize_lines(const float* numbers, int most, std::byte* out) {
  constexpr size_t kGroup = 32;
  constexpr size_t kNumGroups = kSuperBlock / kGroup;
  std::array<Line, kNumGroups> lines;
  float largest_scale = 0;
  float largest_minimum = 0;
  for (size_t i = 0; i < kNumGroups; ++i) {
    const std::span<const float> group(numbers + i * kGroup, kGroup);
    std::array<float, kGroup> weights;
    float squares = 0;
    for (const float x : group) squares += x * x;
    const float root_mean_square = std::sqrt(squares / kGroup);
    std::ranges::transform(group, weights.begin(),
                           [&](float x) { return root_mean_square + std::abs(x); });
    lines[i] = best_line({group, weights, static_cast<float>(most)});
    largest_scale = std::max(largest_scale, lines[i].scale);
    largest_minimum = std::max(largest_minimum, -lines[i].minimum);
  }
  const float scale = store_f16(largest_scale / kMaxPackedScale, out);
  const float minimum = store_f16(largest_minimum / kMaxPackedScale, out + 2);
  std::array<uint8_t, kNumGroups> scales;
  std::array<uint8_t, kNumGroups> minimums;
  SuperValues values;
  for (size_t i = 0; i < kNumGroups; ++i) {
    const float packed_scale = round_and_clamp(lines[i].scale * inverse(scale), 0, kMaxPackedScale);
    const float packed_minimum =
        round_and_clamp(-lines[i].minimum * inverse(minimum), 0, kMaxPackedScale);
    scales[i] = static_cast<uint8_t>(packed_scale);
    minimums[i] = static_cast<uint8_t>(packed_minimum);
    const float steps = inverse(scale * packed_scale);
    for (size_t j = i * kGroup; j < (i + 1) * kGroup; ++j) {
      const float q = (numbers[j] + minimum * packed_minimum) * steps;
      values[j] = static_cast<uint8_t>(round_and_clamp(q, 0, static_cast<float>(most)));
    }
  }
  pack_scales(scales, minimums, out + 4);
  return values;
}

// 32 bytes hold the lower 4 bits of two groups of 32 elements.
void pack_group_nibbles(const SuperValues& values, std::byte* out) {
  for (size_t i = 0; i < kSuperBlock / 2; ++i) {
    const size_t low = i / 32 * 64 + i % 32;
    out[i] = static_cast<std::byte>((values[low] & 0xF) | ((values[low + 32] & 0xF) << 4));
  }
}

// The scale of 16 numbers whose integers are in [-32, 31], with the least error, in which a number
// is weighted by its square.
float best_scale(std::span<const float> numbers) {
  constexpr int kMost = 32;
  constexpr int kNumTries = 19;
  constexpr float kTryStep = 0.1F;
  const float extreme = extreme_of(numbers);
  constexpr float kNegligible = 1e-30F;  // its inverse would overflow
  if (std::abs(extreme) < kNegligible) return 0;
  const float to_relative = 1.0F / extreme;
  float best = 0;
  float best_explained = 0;  // the part of the sum of squares that the integers explain
  for (int i = 0; i < kNumTries; ++i) {
    const float steps =
        -(static_cast<float>(kMost) + kTryStep * static_cast<float>(i - kNumTries / 2)) / extreme;
    Sum xq_sum;
    Sum qq_sum;
    for (size_t first = 0; first < numbers.size(); first += Sum::kNumParts) {
      for (size_t part = 0; part < Sum::kNumParts; ++part) {
        const float x = numbers[first + part];
        const float q = round_and_clamp(x * steps, -kMost, kMost - 1);
        const float relative = x * to_relative;  // keeps the squares in range
        xq_sum.part(part) += relative * relative * relative * q;
        qq_sum.part(part) += relative * relative * q * q;
      }
    }
    const float sum_xq = xq_sum.total();
    const float sum_qq = qq_sum.total();
    if (sum_qq <= 0) continue;
    const float explained = sum_xq * sum_xq / sum_qq;
    if (explained <= best_explained) continue;
    best_explained = explained;
    best = sum_xq / sum_qq * extreme;
  }
  return best;
}

}  // namespace

void write_q8_0(const float* numbers, std::byte* block) {
  constexpr float kMost = 127;
  const std::span<const float> all(numbers, kSmallBlock);
  const float largest = std::abs(extreme_of(all));
  // Numbers that were rounded to integers times a power of two are exact with that scale. The scale
  // largest / 127 would move them off the integers. The embedded model's weights are such numbers
  // (tools/train).
  const float exact = power_of_two_scale(largest, kMost);
  const float scale = largest > 0 && is_exact(all, exact, kMost) ? exact : largest / kMost;
  const float steps = inverse(store_f16(scale, block));
  for (size_t i = 0; i < kSmallBlock; ++i) {
    block[2 + i] = to_byte(round_and_clamp(numbers[i] * steps, -kMost, kMost));
  }
}

void write_q4_0(const float* numbers, std::byte* block) {
  pack_nibbles(quantize_signed(numbers, 8, block), block + 2);
}

void write_q5_0(const float* numbers, std::byte* block) {
  const SmallValues values = quantize_signed(numbers, 16, block);
  pack_fifth_bits(values, block + 2);
  pack_nibbles(values, block + 6);
}

void write_q5_1(const float* numbers, std::byte* block) {
  constexpr float kMost = 31;
  const auto [least, largest] = std::minmax_element(numbers, numbers + kSmallBlock);
  const float steps = inverse(store_f16((*largest - *least) / kMost, block));
  const float minimum = store_f16(*least, block + 2);
  SmallValues values;
  for (size_t i = 0; i < kSmallBlock; ++i) {
    values[i] = static_cast<uint8_t>(round_and_clamp((numbers[i] - minimum) * steps, 0, kMost));
  }
  pack_fifth_bits(values, block + 4);
  pack_nibbles(values, block + 8);
}

void write_q4_k(const float* numbers, std::byte* block) {
  pack_group_nibbles(quantize_lines(numbers, 15, block), block + 16);
}

void write_q5_k(const float* numbers, std::byte* block) {
  const SuperValues values = quantize_lines(numbers, 31, block);
  for (size_t i = 0; i < 32; ++i) {
    unsigned bits = 0;
    for (size_t group = 0; group < 8; ++group) bits |= (values[32 * group + i] >> 4U) << group;
    block[16 + i] = static_cast<std::byte>(bits);
  }
  pack_group_nibbles(values, block + 48);
}

void write_q6_k(const float* numbers, std::byte* block) {
  constexpr size_t kGroup = 16;
  constexpr float kMostScale = 128;
  std::array<float, kSuperBlock / kGroup> scales;
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = best_scale({numbers + i * kGroup, kGroup});
  }
  const float scale = store_f16(extreme_of(scales) / -kMostScale, block + 208);
  SuperValues values;
  for (size_t i = 0; i < scales.size(); ++i) {
    const float packed = round_and_clamp(scales[i] * inverse(scale), -kMostScale, kMostScale - 1);
    block[192 + i] = to_byte(packed);
    const float steps = inverse(scale * packed);
    for (size_t j = i * kGroup; j < (i + 1) * kGroup; ++j) {
      values[j] = static_cast<uint8_t>(round_and_clamp(numbers[j] * steps, -32, 31) + 32);
    }
  }
  // For the 128 elements of each half, 64 bytes hold the lower 4 bits, and 32 bytes the upper 2.
  for (size_t half = 0; half < 2; ++half) {
    const uint8_t* const v = values.data() + 128 * half;
    for (size_t i = 0; i < 64; ++i) {
      block[64 * half + i] = static_cast<std::byte>((v[i] & 0xF) | ((v[i + 64] & 0xF) << 4));
    }
    for (size_t i = 0; i < 32; ++i) {
      const int upper =
          (v[i] >> 4) | ((v[i + 32] >> 4) << 2) | ((v[i + 64] >> 4) << 4) | ((v[i + 96] >> 4) << 6);
      block[128 + 32 * half + i] = static_cast<std::byte>(upper);
    }
  }
}

}  // namespace quire
