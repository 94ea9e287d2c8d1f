// Quantizes checkpoints to integers of 4 or 8 bits and stores them as the tools do that make such
// checkpoints, for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "support/reference_layer.h"

namespace quire::testing {

enum class IntegerTool {
  kAwq,
  kGptq,             // stored zero points are one less
  kGptqV2,           // zero points as they are
  kCompressedPack,   // compressed-tensors "pack-quantized"
  kCompressedBytes,  // compressed-tensors "int-quantized", one byte per value, static activations
};

struct IntegerFormat {
  IntegerTool tool = IntegerTool::kAwq;
  int bits = 4;
  int64_t group_size = 128;  // -1: a scale per row; 0: per tensor
  bool symmetric = false;    // AWQ is always asymmetric
  bool act_order = false;
  std::string_view scales = "F16";  // or BF16, F32
};

struct IntegerCheckpoint {
  std::string config_json;
  StoredTensors tensors;
  StoredTensors dequantized;  // (values - zero points) * scales in F32
};

// Quantizes the matrices whose names end in "_proj.weight".
IntegerCheckpoint quantize_integers(std::string_view config_json,
                                    std::span<const std::byte> safetensors,
                                    const IntegerFormat& format);

}  // namespace quire::testing
