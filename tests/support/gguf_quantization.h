// Quantizes numbers to the blocks of GGUF files, for tests. Scales are chosen simply, so the error
// is somewhat larger than the error of llama.cpp's tools.
#pragma once

#include <span>
#include <string>

#include "tensor/gguf_blocks.h"

namespace quire::testing {

// The type of llama.cpp's name, for example "Q8_0".
const GgufBlockType& gguf_type(std::string_view name);

// Returns the blocks of these numbers, whose count is a multiple of a block's, in any type that
// Quire reads.
std::string quantize(const GgufBlockType& type, std::span<const float> values);

}  // namespace quire::testing
