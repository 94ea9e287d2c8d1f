#include "tensor/gguf_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace quire {
namespace {

constexpr int kSmallBlock = 32;   // elements of a block of Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, IQ4_NL
constexpr int kSuperBlock = 256;  // elements of a block of the K types and of IQ4_XS

// Byte `at` of a block.
int byte_of(const std::byte* block, size_t at) {
  return std::to_integer<int>(block[at]);
}

int signed_byte_of(const std::byte* block, size_t at) {
  return static_cast<int8_t>(block[at]);
}

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

// The F16 number at byte `at` of a block.
float half_at(const std::byte* block, size_t at) {
  return f16_to_f32(load<uint16_t>(block + at));
}

void read_f32(const std::byte* block, float* out) {
  *out = load<float>(block);
}

void read_f16(const std::byte* block, float* out) {
  *out = half_at(block, 0);
}

void read_bf16(const std::byte* block, float* out) {
  *out = bf16_to_f32(load<uint16_t>(block));
}

// F16 scale, then a signed byte per element.
void read_q8_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(signed_byte_of(block, 2 + i));
  }
}

// The 4 bits of element i of 32: the low halves of 16 bytes hold the first 16 elements, the high
// halves hold the others.
int nibble(const std::byte* bytes, size_t i) {
  return i < 16 ? byte_of(bytes, i) & 0xF : byte_of(bytes, i - 16) >> 4;
}

// F16 scale, then 4 bits per element, which stand for -8 to 7.
void read_q4_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(nibble(block + 2, i) - 8);
  }
}

// F16 scale and minimum, then 4 bits per element.
void read_q4_1(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(nibble(block + 4, i)) + minimum;
  }
}

// Element i of 32 with 5 bits: the fifth bits are the bits of a number of 32 bits.
int five_bits(const std::byte* high, const std::byte* low, size_t i) {
  const uint32_t fifth = (load<uint32_t>(high) >> i) & 1;
  return nibble(low, i) | static_cast<int>(fifth << 4);
}

// F16 scale, the fifth bits, then 4 bits per element; the 5 bits stand for -16 to 15.
void read_q5_0(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block + 2, block + 6, i) - 16);
  }
}

// F16 scale and minimum, the fifth bits, then 4 bits per element.
void read_q5_1(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(five_bits(block + 4, block + 8, i)) + minimum;
  }
}

// The values that the 4 bits of IQ4_NL and IQ4_XS stand for.
constexpr std::array<int, 16> kNonlinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

// F16 scale, then 4 bits per element.
void read_iq4_nl(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  for (size_t i = 0; i < kSmallBlock; ++i) {
    out[i] = scale * static_cast<float>(kNonlinear[static_cast<size_t>(nibble(block + 2, i))]);
  }
}

// F16 scale, 8 scales of 6 bits (the upper 2 bits in 16 bits, the lower 4 in 4 bytes), then 8
// groups of 32 elements with 4 bits each.
void read_iq4_xs(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const unsigned upper = load<uint16_t>(block + 2);
  for (size_t group = 0; group < 8; ++group) {
    const int low = (byte_of(block, 4 + group / 2) >> (4 * (group % 2))) & 0xF;
    const int high = static_cast<int>((upper >> (2 * group)) & 3);
    const float group_scale = scale * static_cast<float>((low | (high << 4)) - 32);
    const std::byte* bytes = block + 8 + 16 * group;
    for (size_t i = 0; i < 32; ++i) {
      const int value = kNonlinear[static_cast<size_t>(nibble(bytes, i))];
      out[32 * group + i] = group_scale * static_cast<float>(value);
    }
  }
}

// Element i of 256 with 2 bits: 32 bytes hold 4 runs of 32 elements of one half.
int two_bits(const std::byte* bytes, size_t i) {
  const size_t half = i / 128;
  const size_t run = i % 128 / 32;
  return (byte_of(bytes, 32 * half + i % 32) >> (2 * run)) & 3;
}

// 16 bytes with the scale (lower half) and the minimum (upper half) of 16 elements, 2 bits per
// element, then the F16 scales of the scales and of the minimums.
void read_q2_k(const std::byte* block, float* out) {
  const float scale = half_at(block, 80);
  const float minimum = half_at(block, 82);
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const int group = byte_of(block, i / 16);
    out[i] = scale * static_cast<float>(group & 0xF) * static_cast<float>(two_bits(block + 16, i)) -
             minimum * static_cast<float>(group >> 4);
  }
}

// One of the 16 scales of 6 bits of Q3_K, which stand for -32 to 31: 8 bytes with the lower 4 bits,
// then 4 bytes with the upper 2 bits.
int q3_k_scale(const std::byte* bytes, size_t group) {
  const int low = (byte_of(bytes, group % 8) >> (4 * (group / 8))) & 0xF;
  const int high = (byte_of(bytes, 8 + group % 4) >> (2 * (group / 4))) & 3;
  return (low | (high << 4)) - 32;
}

// 32 bytes with the third bits, inverted: bit 4 * half + run of byte i % 32; 2 bits per element,
// the scales of 16 elements each, then their F16 scale.
void read_q3_k(const std::byte* block, float* out) {
  const float scale = half_at(block, 108);
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const bool has_third = (byte_of(block, i % 32) >> (i / 32) & 1) != 0;
    const int value = two_bits(block + 32, i) - (has_third ? 0 : 4);
    out[i] = scale * static_cast<float>(q3_k_scale(block + 96, i / 16)) * static_cast<float>(value);
  }
}

struct ScaleAndMinimum {
  int scale;
  int minimum;
};

// The scale and the minimum of one of 8 groups, 6 bits each, in 12 bytes: of the first four groups
// in the lower 6 bits of 8 bytes, whose upper 2 bits belong to the other four groups.
ScaleAndMinimum packed_scale(const std::byte* bytes, size_t group) {
  if (group < 4) return {byte_of(bytes, group) & 63, byte_of(bytes, group + 4) & 63};
  const int low = byte_of(bytes, group + 4);
  return {(low & 0xF) | ((byte_of(bytes, group - 4) >> 6) << 4),
          (low >> 4) | ((byte_of(bytes, group) >> 6) << 4)};
}

// The lower 4 bits of element i of 256: 32 bytes hold two groups of 32 elements.
int group_nibble(const std::byte* bytes, size_t i) {
  const int both = byte_of(bytes, i / 64 * 32 + i % 32);
  return i % 64 < 32 ? both & 0xF : both >> 4;
}

// F16 scales of the scales and of the minimums, both packed for 8 groups, then 4 bits per element.
void read_q4_k(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const ScaleAndMinimum group = packed_scale(block + 4, i / 32);
    out[i] =
        scale * static_cast<float>(group.scale) * static_cast<float>(group_nibble(block + 16, i)) -
        minimum * static_cast<float>(group.minimum);
  }
}

// As Q4_K with 32 bytes of fifth bits before the 4 bits: bit `group` of byte i % 32.
void read_q5_k(const std::byte* block, float* out) {
  const float scale = half_at(block, 0);
  const float minimum = half_at(block, 2);
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const ScaleAndMinimum group = packed_scale(block + 4, i / 32);
    const int fifth = (byte_of(block, 16 + i % 32) >> (i / 32)) & 1;
    const int value = group_nibble(block + 48, i) | (fifth << 4);
    out[i] = scale * static_cast<float>(group.scale) * static_cast<float>(value) -
             minimum * static_cast<float>(group.minimum);
  }
}

// The lower 4 bits, then the upper 2 bits, of elements that stand for -32 to 31, a signed scale per
// 16 elements, and their F16 scale. Of the 128 elements of each half, 64 bytes hold the lower bits:
// the lower halves those of the first 64 elements.
void read_q6_k(const std::byte* block, float* out) {
  const float scale = half_at(block, 208);
  for (size_t i = 0; i < kSuperBlock; ++i) {
    const size_t within = i % 128;
    const int both = byte_of(block, i / 128 * 64 + within % 64);
    const int low = within < 64 ? both & 0xF : both >> 4;
    const int value = (low | (two_bits(block + 128, i) << 4)) - 32;
    out[i] =
        scale * static_cast<float>(signed_byte_of(block, 192 + i / 16)) * static_cast<float>(value);
  }
}

constexpr std::array kBlockTypes = {
    GgufBlockType{0, "F32", 1, 4, read_f32, DType::kF32},
    GgufBlockType{1, "F16", 1, 2, read_f16, DType::kF16},
    GgufBlockType{30, "BF16", 1, 2, read_bf16, DType::kBF16},
    GgufBlockType{8, "Q8_0", kSmallBlock, 34, read_q8_0},
    GgufBlockType{2, "Q4_0", kSmallBlock, 18, read_q4_0},
    GgufBlockType{3, "Q4_1", kSmallBlock, 20, read_q4_1},
    GgufBlockType{6, "Q5_0", kSmallBlock, 22, read_q5_0},
    GgufBlockType{7, "Q5_1", kSmallBlock, 24, read_q5_1},
    GgufBlockType{10, "Q2_K", kSuperBlock, 84, read_q2_k},
    GgufBlockType{11, "Q3_K", kSuperBlock, 110, read_q3_k},
    GgufBlockType{12, "Q4_K", kSuperBlock, 144, read_q4_k},
    GgufBlockType{13, "Q5_K", kSuperBlock, 176, read_q5_k},
    GgufBlockType{14, "Q6_K", kSuperBlock, 210, read_q6_k},
    GgufBlockType{20, "IQ4_NL", kSmallBlock, 18, read_iq4_nl},
    GgufBlockType{23, "IQ4_XS", kSuperBlock, 136, read_iq4_xs},
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
                                                                              {39, "MXFP4"},
                                                                              {40, "NVFP4"}});

}  // namespace

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
