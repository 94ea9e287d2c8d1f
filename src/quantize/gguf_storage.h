// How llama.cpp's converter stores the tensors of a checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/decoder_config.h"
#include "model/gguf/gguf_names.h"
#include "quire/status.h"

namespace quire {

// The differences between a tensor in a file and in the checkpoint that it is made from.
struct GgufStorage {
  std::string name;  // in the file
  GgufChanges changes = {};

  // The checkpoint's row that is row `row` of the file: the inverse of BlockMatrix::row.
  int64_t source_row(int64_t row) const;
};

// The storage of the tensor that a checkpoint calls `name`, such as
// "model.layers.3.mlp.up_proj.weight". `architecture` is llama.cpp's. Fails if llama.cpp has no
// name for the tensor.
Result<GgufStorage> gguf_storage(std::string_view name, std::string_view architecture,
                                 const DecoderConfig& decoder);

}  // namespace quire
