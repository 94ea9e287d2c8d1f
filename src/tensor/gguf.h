// Recognizes GGUF files, so that an error can name the file's format and quantization.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace quire {

struct GgufInfo {
  std::string architecture;  // "llama"; empty: not found
  std::string scheme;        // llama.cpp's name, such as "Q4_K_M"; empty: not found
};

// Reads the beginning of a GGUF file (llama.cpp's format). Returns nullopt for another format. The
// bytes may be cut off or malformed; then the fields that were not found are empty.
std::optional<GgufInfo> inspect_gguf(std::string_view beginning);

}  // namespace quire
