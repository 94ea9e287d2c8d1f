// The types of tensors in GGUF files: llama.cpp's blocks of packed numbers, and their conversion to
// F32. Quire also writes some of them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace quire {

// The integers that a block of quantized numbers consists of. A group is group_elements adjacent
// elements, each of which is
//   scale * group_scales[group] * (value - offset) - minimum * group_minimums[group],
// with GgufBlockType::offset; the last term exists only in types with minimums. In MXFP4, an
// element is 2^(scale - 127) * e2m1_to_f32(value).
struct QuantizedBlock {
  uint16_t scale = 0;  // F16; in MXFP4 an exponent of 8 bits
  uint16_t minimum = 0;
  std::array<int8_t, 16> group_scales = {};
  std::array<uint8_t, 16> group_minimums = {};
  std::array<uint8_t, 256> values = {};
};

struct GgufBlockType {
  uint32_t id;  // in the file
  const char* name;
  int64_t block_elements;
  int64_t block_bytes;
  // Set for plain types: a block is one number, with which Quire computes as it is. The fields
  // below are then unused.
  std::optional<DType> plain = {};
  int value_bits = 0;      // values are below 2^value_bits
  int group_elements = 0;  // 16 or 32
  int offset = 0;
  bool has_minimums = false;
  // Reads a block, which needs no alignment.
  void (*read)(const std::byte* block, QuantizedBlock& out) = nullptr;
  // Writes a block of numbers (gguf_encoders.h); null if Quire only reads the type.
  void (*write)(const float* numbers, std::byte* block) = nullptr;
  bool is_mxfp4 = false;
};

// The value of an E8M0 exponent, 2^(exponent - 127). 255 is a NaN.
float e8m0_to_f32(uint8_t exponent);
// The value of an E2M1 code < 16: 0, 0.5, 1, 1.5, 2, 3, 4, 6, then these negated.
float e2m1_to_f32(uint8_t code);

// Writes the block_elements numbers of one block.
void dequantize(const GgufBlockType& type, const std::byte* block, float* out);

// Whether quantize() writes the type.
bool can_quantize(const GgufBlockType& type);
// Writes one block of block_elements finite numbers. In types other than F32 and BF16, their
// magnitude must be at most 65504, the largest F16 number.
void quantize(const GgufBlockType& type, const float* numbers, std::byte* block);

// A matrix of a GGUF file, in host memory.
struct BlockMatrix {
  const GgufBlockType* type = nullptr;
  const std::byte* bytes = nullptr;
  Shape shape;  // [rows, columns]; rows are whole blocks
  // Rows per head, if the file stores them in the pairs that llama.cpp rotates: rows of the first
  // half of the head alternate with rows of the second half. 0: in order.
  int64_t paired_rows = 0;

  int64_t blocks_per_row() const { return shape[1] / type->block_elements; }
  // The blocks of row `i`, in the order of the checkpoint that the file was made from.
  const std::byte* row(int64_t i) const;
};

// Returns null if Quire cannot read the type.
const GgufBlockType* find_gguf_block_type(uint32_t id);
// All types that Quire reads.
std::span<const GgufBlockType> gguf_block_types();
// llama.cpp's name of any type, "type 77" for an unknown one.
std::string gguf_type_name(uint32_t id);
// Returns "F32, F16, …".
std::string supported_gguf_types();

}  // namespace quire
