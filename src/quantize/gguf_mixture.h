// The types of a GGUF file's matrices, as llama.cpp's quantizer chooses them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/gguf_blocks.h"

namespace quire {

enum class GgufTarget { kF16, kBf16, kQ8_0, kQ4_0, kQ4KM };

// The number of the target in "general.file_type".
uint32_t gguf_file_type(GgufTarget target);

struct GgufModelShape {
  std::string_view architecture;  // llama.cpp's name
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  bool has_output = false;  // a matrix "output" beside the embedding
};

struct GgufChoice {
  const GgufBlockType* type = nullptr;
  // The preferred type, which `type` replaces because its blocks do not fit the rows; null: none.
  const GgufBlockType* unfit = nullptr;
};

// The type of a matrix [rows, columns]. `name`: in the file, such as "blk.3.ffn_up.weight".
GgufChoice choose_gguf_type(std::string_view name, int64_t columns, GgufTarget target,
                            const GgufModelShape& model);

}  // namespace quire
