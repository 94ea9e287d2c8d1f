#include "tensor/gguf_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "tensor/gguf_encoders.h"

namespace quire {
namespace {

constexpr uint16_t kSignBit = 0x8000;  // of an F16 number

// Byte `at` of a block.
uint8_t byte_of(const std::byte* block, size_t at) {
  return std::to_integer<uint8_t>(block[at]);
}

// Bits [shift, shift + 8) of a longer number.
uint8_t bits_from(uint32_t bits, size_t shift) {
  return static_cast<uint8_t>(bits >> shift);
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// The scale of a block without scales per group.
void set_scale(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block);
  out.group_scales[0] = 1;
}

// The scale and the minimum of a block without scales per group. The file's minimum is added,
// QuantizedBlock::minimum is subtracted.
void set_scale_and_minimum(const std::byte* block, QuantizedBlock& out) {
  set_scale(block, out);
  out.minimum = load<uint16_t>(block + 2) ^ kSignBit;
  out.group_minimums[0] = 1;
}

// F16 scale, then a signed byte per element.
void read_q8_0(const std::byte* block, QuantizedBlock& out) {
  set_scale(block, out);
  for (size_t i = 0; i < kSmallBlock; ++i) out.values[i] = byte_of(block, 2 + i) ^ 0x80;
}

// The functions below have loops over adjacent bytes, which the compiler vectorizes: the weights of
// a whole file go through them at load.

// Writes the low halves of `count` bytes to `low`, and the high halves to `high`.
void read_halves(const std::byte* bytes, size_t count, uint8_t* __restrict low,
                 uint8_t* __restrict high) {
  for (size_t i = 0; i < count; ++i) {
    low[i] = byte_of(bytes, i) & 0xF;
    high[i] = byte_of(bytes, i) >> 4;
  }
}

// Takes `count` bits of each of 32 bytes, from bit `first` on, and adds them to 32 values, from bit
// `to` on.
inline __attribute__((always_inline)) void add_bits(const std::byte* bytes, size_t first,
                                                    size_t count, size_t to,
                                                    uint8_t* __restrict values) {
  const unsigned mask = (1U << count) - 1;
  for (size_t i = 0; i < 32; ++i) {
    values[i] |= bits_from(((byte_of(bytes, i) >> first) & mask) << to, 0);
  }
}

// The 32 elements of a small block with 4 bits: the low halves of 16 bytes hold the first 16.
void read_nibbles(const std::byte* bytes, uint8_t* values) {
  read_halves(bytes, 16, values, values + 16);
}

// F16 scale, then 4 bits per element, which stand for -8 to 7.
void read_q4_0(const std::byte* block, QuantizedBlock& out) {
  set_scale(block, out);
  read_nibbles(block + 2, out.values.data());
}

// F16 scale and minimum, then 4 bits per element.
void read_q4_1(const std::byte* block, QuantizedBlock& out) {
  set_scale_and_minimum(block, out);
  read_nibbles(block + 4, out.values.data());
}

// The 32 elements of a small block with 5 bits: the fifth bits are the bits of a number of 32 bits.
void read_five_bits(const std::byte* high, const std::byte* low, uint8_t* values) {
  read_nibbles(low, values);
  const auto fifth = load<uint32_t>(high);
  for (size_t i = 0; i < kSmallBlock; ++i) values[i] |= bits_from((fifth >> i & 1) << 4, 0);
}

// F16 scale, the fifth bits, then 4 bits per element; the 5 bits stand for -16 to 15.
void read_q5_0(const std::byte* block, QuantizedBlock& out) {
  set_scale(block, out);
  read_five_bits(block + 2, block + 6, out.values.data());
}

// F16 scale and minimum, the fifth bits, then 4 bits per element.
void read_q5_1(const std::byte* block, QuantizedBlock& out) {
  set_scale_and_minimum(block, out);
  read_five_bits(block + 4, block + 8, out.values.data());
}

// The values that the 4 bits of IQ4_NL and IQ4_XS stand for, plus 128.
constexpr std::array<uint8_t, 16> kNonlinear = {1,   24,  45,  63,  79,  93,  106, 118,
                                                129, 141, 153, 166, 181, 197, 217, 241};

// The 32 values that 16 bytes with 4 bits per element stand for.
void read_nonlinear(const std::byte* bytes, uint8_t* values) {
  read_nibbles(bytes, values);
  for (size_t i = 0; i < kSmallBlock; ++i) values[i] = kNonlinear[values[i]];
}

// F16 scale, then 4 bits per element.
void read_iq4_nl(const std::byte* block, QuantizedBlock& out) {
  set_scale(block, out);
  read_nonlinear(block + 2, out.values.data());
}

// F16 scale, 8 scales of 6 bits (the upper 2 bits in 16 bits, the lower 4 in 4 bytes), then 8
// groups of 32 elements with 4 bits each.
void read_iq4_xs(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block);
  const unsigned upper = load<uint16_t>(block + 2);
  for (size_t group = 0; group < 8; ++group) {
    const int low = (byte_of(block, 4 + group / 2) >> (4 * (group % 2))) & 0xF;
    const int high = static_cast<int>((upper >> (2 * group)) & 3);
    out.group_scales[group] = static_cast<int8_t>((low | (high << 4)) - 32);
    read_nonlinear(block + 8 + 16 * group, out.values.data() + 32 * group);
  }
}

// Adds the 2 bits of each of 256 elements to values, from bit `to` on. 32 bytes hold 4 runs of 32
// elements: one half of the block.
void add_two_bits(const std::byte* bytes, size_t to, uint8_t* values) {
#pragma GCC unroll 8
  for (size_t run = 0; run < 8; ++run) {
    add_bits(bytes + run / 4 * 32, run % 4 * 2, 2, to, values + 32 * run);
  }
}

// 16 bytes with the scale (lower half) and the minimum (upper half) of 16 elements, 2 bits per
// element, then the F16 scales of the scales and of the minimums.
void read_q2_k(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block + 80);
  out.minimum = load<uint16_t>(block + 82);
  for (size_t group = 0; group < 16; ++group) {
    out.group_scales[group] = static_cast<int8_t>(byte_of(block, group) & 0xF);
    out.group_minimums[group] = byte_of(block, group) >> 4;
  }
  out.values = {};
  add_two_bits(block + 16, 0, out.values.data());
}

// One of the 16 scales of 6 bits of Q3_K, which stand for -32 to 31: 8 bytes with the lower 4 bits,
// then 4 bytes with the upper 2 bits.
int8_t q3_k_scale(const std::byte* bytes, size_t group) {
  const int low = (byte_of(bytes, group % 8) >> (4 * (group / 8))) & 0xF;
  const int high = (byte_of(bytes, 8 + group % 4) >> (2 * (group / 4))) & 3;
  return static_cast<int8_t>((low | (high << 4)) - 32);
}

// 32 bytes with the third bits: bit 4 * half + run of byte i % 32. Then 2 bits per element, the
// scales of 16 elements each, and their F16 scale. The 3 bits of an element stand for -4 to 3.
void read_q3_k(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block + 108);
  for (size_t group = 0; group < 16; ++group) {
    out.group_scales[group] = q3_k_scale(block + 96, group);
  }
  out.values = {};
  add_two_bits(block + 32, 0, out.values.data());
#pragma GCC unroll 8
  for (size_t run = 0; run < 8; ++run) {
    add_bits(block, run, 1, 2, out.values.data() + 32 * run);
  }
}

// The scales and the minimums of 8 groups, 6 bits each, in 12 bytes. The lower 6 bits of the first
// 8 bytes are those of the first four groups; all other bits belong to the other four groups.
void set_packed_scales(const std::byte* bytes, QuantizedBlock& out) {
  for (size_t group = 0; group < 4; ++group) {
    const uint8_t scale = byte_of(bytes, group);
    const uint8_t minimum = byte_of(bytes, group + 4);
    const uint8_t both = byte_of(bytes, group + 8);
    out.group_scales[group] = static_cast<int8_t>(scale & 63);
    out.group_minimums[group] = minimum & 63;
    out.group_scales[group + 4] = static_cast<int8_t>((both & 0xF) | ((scale >> 6) << 4));
    out.group_minimums[group + 4] = bits_from((both >> 4U) | ((minimum >> 6U) << 4U), 0);
  }
}

// The lower 4 bits of 256 elements: 32 bytes hold two groups of 32 elements.
void read_group_nibbles(const std::byte* bytes, uint8_t* values) {
  for (size_t pair = 0; pair < 4; ++pair) {
    read_halves(bytes + 32 * pair, 32, values + 64 * pair, values + 64 * pair + 32);
  }
}

// F16 scales of the scales and of the minimums, both packed for 8 groups, then 4 bits per element.
void read_q4_k(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block);
  out.minimum = load<uint16_t>(block + 2);
  set_packed_scales(block + 4, out);
  read_group_nibbles(block + 16, out.values.data());
}

// The layout of Q4_K, with 32 bytes of fifth bits before the 4 bits: bit `group` of byte i % 32.
void read_q5_k(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block);
  out.minimum = load<uint16_t>(block + 2);
  set_packed_scales(block + 4, out);
  read_group_nibbles(block + 48, out.values.data());
#pragma GCC unroll 8
  for (size_t group = 0; group < 8; ++group) {
    add_bits(block + 16, group, 1, 4, out.values.data() + 32 * group);
  }
}

// The lower 4 bits, then the upper 2 bits, of elements that stand for -32 to 31, a signed scale per
// 16 elements, and their F16 scale. For each half of 128 elements, 64 bytes hold the lower bits:
// the first 64 elements are in the lower halves of the bytes.
void read_q6_k(const std::byte* block, QuantizedBlock& out) {
  out.scale = load<uint16_t>(block + 208);
  std::memcpy(out.group_scales.data(), block + 192, out.group_scales.size());
  for (size_t half = 0; half < 2; ++half) {
    uint8_t* const values = out.values.data() + 128 * half;
    read_halves(block + 64 * half, 64, values, values + 64);
  }
  add_two_bits(block + 128, 4, out.values.data());
}

// E8M0 scale, then 4 bits per element.
void read_mxfp4(const std::byte* block, QuantizedBlock& out) {
  out.scale = byte_of(block, 0);
  read_nibbles(block + 1, out.values.data());
}

constexpr bool kHasMinimums = true;
constexpr std::array kBlockTypes = {
    GgufBlockType{0, "F32", 1, 4, DType::kF32},
    GgufBlockType{1, "F16", 1, 2, DType::kF16},
    GgufBlockType{30, "BF16", 1, 2, DType::kBF16},
    GgufBlockType{8, "Q8_0", kSmallBlock, 34, {}, 8, 32, 128, !kHasMinimums, read_q8_0, write_q8_0},
    GgufBlockType{2, "Q4_0", kSmallBlock, 18, {}, 4, 32, 8, !kHasMinimums, read_q4_0, write_q4_0},
    GgufBlockType{3, "Q4_1", kSmallBlock, 20, {}, 4, 32, 0, kHasMinimums, read_q4_1},
    GgufBlockType{6, "Q5_0", kSmallBlock, 22, {}, 5, 32, 16, !kHasMinimums, read_q5_0, write_q5_0},
    GgufBlockType{7, "Q5_1", kSmallBlock, 24, {}, 5, 32, 0, kHasMinimums, read_q5_1, write_q5_1},
    GgufBlockType{10, "Q2_K", kSuperBlock, 84, {}, 2, 16, 0, kHasMinimums, read_q2_k},
    GgufBlockType{11, "Q3_K", kSuperBlock, 110, {}, 3, 16, 4, !kHasMinimums, read_q3_k},
    GgufBlockType{12, "Q4_K", kSuperBlock, 144, {}, 4, 32, 0, kHasMinimums, read_q4_k, write_q4_k},
    GgufBlockType{13, "Q5_K", kSuperBlock, 176, {}, 5, 32, 0, kHasMinimums, read_q5_k, write_q5_k},
    GgufBlockType{
        14, "Q6_K", kSuperBlock, 210, {}, 6, 16, 32, !kHasMinimums, read_q6_k, write_q6_k},
    GgufBlockType{20, "IQ4_NL", kSmallBlock, 18, {}, 8, 32, 128, !kHasMinimums, read_iq4_nl},
    GgufBlockType{23, "IQ4_XS", kSuperBlock, 136, {}, 8, 32, 128, !kHasMinimums, read_iq4_xs},
    GgufBlockType{.id = 39,
                  .name = "MXFP4",
                  .block_elements = kSmallBlock,
                  .block_bytes = 17,
                  .value_bits = 4,
                  .group_elements = 32,
                  .read = read_mxfp4,
                  .is_mxfp4 = true},
};

// The names of the types that Quire does not read.
constexpr auto kOtherTypes = std::to_array<std::pair<uint32_t, const char*>>({{9, "Q8_1"},
                                                                              {15, "Q8_K"},
                                                                              {16, "IQ2_XXS"},
                                                                              {17, "IQ2_XS"},
                                                                              {18, "IQ3_XXS"},
                                                                              {19, "IQ1_S"},
                                                                              {21, "IQ3_S"},
                                                                              {22, "IQ2_S"},
                                                                              {24, "I8"},
                                                                              {25, "I16"},
                                                                              {26, "I32"},
                                                                              {27, "I64"},
                                                                              {28, "F64"},
                                                                              {29, "IQ1_M"},
                                                                              {34, "TQ1_0"},
                                                                              {35, "TQ2_0"},
                                                                              {40, "NVFP4"}});

}  // namespace

float e8m0_to_f32(uint8_t exponent) {
  if (exponent == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, exponent - 127);
}

float e2m1_to_f32(uint8_t code) {
  constexpr std::array kMagnitudes = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  const float magnitude = kMagnitudes[code % kMagnitudes.size()];
  return code < kMagnitudes.size() ? magnitude : -magnitude;
}

void dequantize(const GgufBlockType& type, const std::byte* block, float* out) {
  if (type.plain == DType::kF32) {
    *out = load<float>(block);
  } else if (type.plain) {
    *out = (*type.plain == DType::kF16 ? f16_to_f32 : bf16_to_f32)(load<uint16_t>(block));
  }
  if (type.plain) return;
  QuantizedBlock parts;
  type.read(block, parts);
  if (type.is_mxfp4) {
    const float scale = e8m0_to_f32(bits_from(parts.scale, 0));
    for (size_t i = 0; i < kSmallBlock; ++i) out[i] = scale * e2m1_to_f32(parts.values[i]);
    return;
  }
  const float scale = f16_to_f32(parts.scale);
  const float minimum = type.has_minimums ? f16_to_f32(parts.minimum) : 0.0F;
  const auto group_elements = static_cast<size_t>(type.group_elements);
  const size_t num_groups = static_cast<size_t>(type.block_elements) / group_elements;
  for (size_t group = 0; group < num_groups; ++group) {
    const uint8_t* const values = parts.values.data() + group * group_elements;
    float* const numbers = out + group * group_elements;
    const float factor = scale * static_cast<float>(parts.group_scales[group]);
    for (size_t i = 0; i < group_elements; ++i) {
      numbers[i] = factor * static_cast<float>(values[i] - type.offset);
    }
    if (!type.has_minimums) continue;
    const float subtrahend = minimum * static_cast<float>(parts.group_minimums[group]);
    for (size_t i = 0; i < group_elements; ++i) numbers[i] -= subtrahend;
  }
}

bool can_quantize(const GgufBlockType& type) {
  return type.plain || type.write != nullptr;
}

void quantize(const GgufBlockType& type, const float* numbers, std::byte* block) {
  if (type.plain == DType::kF32) {
    std::memcpy(block, numbers, sizeof(float));
  } else if (type.plain) {
    const uint16_t bits = (*type.plain == DType::kF16 ? f32_to_f16 : f32_to_bf16)(*numbers);
    std::memcpy(block, &bits, sizeof(bits));
  } else {
    type.write(numbers, block);
  }
}

const std::byte* BlockMatrix::row(int64_t i) const {
  int64_t at = i;
  if (paired_rows > 0) {
    const int64_t in_head = i % paired_rows;
    const int64_t half = paired_rows / 2;
    at = i - in_head + 2 * (in_head % half) + in_head / half;
  }
  return bytes + at * blocks_per_row() * type->block_bytes;
}

std::span<const GgufBlockType> gguf_block_types() {
  return kBlockTypes;
}

const GgufBlockType* find_gguf_block_type(uint32_t id) {
  const auto* const found = std::ranges::find(kBlockTypes, id, &GgufBlockType::id);
  return found == kBlockTypes.end() ? nullptr : found;
}

std::string gguf_type_name(uint32_t id) {
  if (const GgufBlockType* type = find_gguf_block_type(id)) return type->name;
  const auto* const other =
      std::ranges::find(kOtherTypes, id, &std::pair<uint32_t, const char*>::first);
  return other == kOtherTypes.end() ? fmt::format("type {}", id) : other->second;
}

std::string supported_gguf_types() {
  std::string names;
  for (const GgufBlockType& type : kBlockTypes) {
    if (!names.empty()) names += ", ";
    names += type.name;
  }
  return names;
}

}  // namespace quire
