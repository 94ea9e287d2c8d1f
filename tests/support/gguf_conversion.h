// Converts a checkpoint to a GGUF file, as llama.cpp's converter does, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace quire::testing {

// The types that matrices have in the checkpoint, in place of one type for all.
inline constexpr std::string_view kAsStored = {};

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

// Returns the bytes of the file. `architecture` is llama.cpp's name, and `matrices` its name of the
// matrices' type, for example "Q8_0", or kAsStored. Rows that are not whole blocks of the type get
// one of smaller blocks, or F16.
std::string convert_to_gguf(const GgufSource& source, std::string_view architecture,
                            std::string_view matrices);

}  // namespace quire::testing
