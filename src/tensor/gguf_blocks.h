// The types of tensors in GGUF files: how llama.cpp packs numbers into blocks, and how they become
// F32 again. Each function follows the layout of one type and is written for clarity, not speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace quire {

struct GgufBlockType {
  uint32_t id;  // in the file
  const char* name;
  int64_t block_elements;
  int64_t block_bytes;
  // Writes the block_elements numbers of one block. Blocks need no alignment.
  void (*dequantize)(const std::byte* block, float* out);
  // The type if a block is one number that Quire computes with as it is.
  std::optional<DType> plain = {};
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
