// Matrices in MXFP4 (OCP Microscaling Formats, version 1.0), as gpt-oss publishes its experts:
// numbers of 4 bits (E2M1) with an exponent of 8 bits (E8M0) per group of 32 columns. They are
// presented in the blocks of GGUF files, which every device reads.
#pragma once

#include <memory>
#include <string_view>

#include "model/tensor_layout.h"
#include "tensor/forwarding_source.h"

namespace quire {

// The suffixes of a matrix's tensors: U8 [rows, columns / 32, 16], where the lower half of byte i
// is column 2 i of the group; and U8 exponents [rows, columns / 32].
inline constexpr std::string_view kMxfp4Blocks = ".weight_blocks";
inline constexpr std::string_view kMxfp4Scales = ".weight_scales";

constexpr bool is_mxfp4_suffix(std::string_view suffix) {
  return suffix == kMxfp4Blocks || suffix == kMxfp4Scales;
}

// Presents the matrices of `source` that are stored with these suffixes as blocks, and checks the
// types and shapes of their tensors. `source` has the decoder's names. If its weights are random
// and the layout has_mxfp4_experts, its experts are random blocks.
Result<std::unique_ptr<WeightSource>> present_mxfp4(std::unique_ptr<WeightSource> source,
                                                    const TensorLayout& layout);

}  // namespace quire
