// Converts a checkpoint to a GGUF file, as llama.cpp's converter does, for tests.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace quire::testing {

enum class GgufMatrices { kAsStored, kF32, kF16, kQ8_0, kQ4_0 };

struct GgufSource {
  std::string_view config_json;
  std::span<const std::byte> safetensors;
  std::string_view tokenizer_json = {};  // a byte-level BPE; empty: none
  std::string_view chat_template = {};
};

// The bytes of the file. `architecture` is llama.cpp's name. With kQ8_0 and kQ4_0, rows must be
// multiples of 32.
std::string convert_to_gguf(const GgufSource& source, std::string_view architecture,
                            GgufMatrices matrices);

}  // namespace quire::testing
