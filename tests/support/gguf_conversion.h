// Converts a checkpoint to a GGUF file, as llama.cpp's converter does, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

// Quantized types last. Rows that are not whole blocks get a type of smaller blocks, or F16.
enum class GgufMatrices { kAsStored, kF32, kF16, kQ8_0, kQ4_0, kQ4_K, kQ6_K };

struct GgufSource {
  std::string_view config_json;
  std::span<const std::byte> safetensors;
  std::string_view tokenizer_json = {};  // a byte-level BPE; empty: none
  std::string_view chat_template = {};
  // Files of DeepSeek models older than April 2025 have the matrix of keys and values in one
  // tensor.
  bool joins_latent = false;
  // The gates and the ups of experts in one tensor, an option of llama.cpp's converter.
  bool fuses_gate_and_up = false;
  // llama.cpp's number of an embedding model's kind of pooling.
  std::optional<uint32_t> pooling = {};
  // Matrices of which the file's name contains one of these are F16.
  std::vector<std::string> f16 = {};
};

// The bytes of the file. `architecture` is llama.cpp's name.
std::string convert_to_gguf(const GgufSource& source, std::string_view architecture,
                            GgufMatrices matrices);

}  // namespace quire::testing
