// Quantizes checkpoints to FP8 and stores them as the tools do that make such checkpoints, for
// tests.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "support/reference_layer.h"

namespace quire::testing {

enum class Fp8Tool {
  kModelopt,           // per tensor, static activations, scales of the KV cache
  kCompressedTensor,   // compressed-tensors, per tensor, static activations
  kCompressedChannel,  // compressed-tensors, per row, dynamic activations
  kCompressedBlock,    // compressed-tensors, per block
  kHuggingFaceTensor,  // "fp8" without blocks (AutoFP8), static activations
  kHuggingFaceBlock,   // "fp8" with weight_scale_inv, as Qwen and DeepSeek publish
};

struct Fp8Checkpoint {
  std::string config_json;  // config.json
  std::string quant_json;   // hf_quant_config.json; empty: none
  StoredTensors tensors;
  StoredTensors dequantized;  // values * scales, in BF16 if config.json says so, otherwise in F32
};

// Quantizes the matrices whose names end in "_proj.weight" or "_with_mqa.weight". `scales` is the
// type of their scales: "F32" or "BF16".
Fp8Checkpoint quantize_checkpoint(std::string_view config_json,
                                  std::span<const std::byte> safetensors, Fp8Tool tool,
                                  std::string_view scales = "F32");

}  // namespace quire::testing
