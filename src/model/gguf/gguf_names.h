// The names of tensors in a GGUF file and in the checkpoint that it was made from.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder_config.h"

namespace quire {

// The names of one model. A checkpoint has a tensor per expert; a file stacks those of a layer. The
// name of a stack is that of its tensors without the expert's number:
// "….mlp.experts.up_proj.weight".
class GgufNames {
 public:
  GgufNames(bool is_gemma, const DecoderConfig& decoder);

  // The checkpoint's name of a tensor in the file, for example "model.layers.3.mlp.up_proj.weight"
  // of "blk.3.ffn_up.weight"; the same name if there is no other.
  std::string in_checkpoint(std::string_view name) const;
  // The file's name of a tensor in the checkpoint, for errors; nothing if there is none.
  std::optional<std::string> in_file(std::string_view name) const;

 private:
  struct Pair {
    std::string file;
    std::string checkpoint;
  };
  std::vector<Pair> ends_;   // before ".weight" or ".bias"
  std::vector<Pair> parts_;  // behind "blk.N." and "model.layers.N."
};

// "….mlp.experts.7.up_proj.weight" of a stack's name.
std::string expert_name(std::string_view stack, int64_t expert);

}  // namespace quire
