// The names of tensors in a GGUF file and in the checkpoint that it was made from, and the
// differences between the two.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder_config.h"
#include "model/gguf/gguf_architectures.h"

namespace quire {

// The changes that llama.cpp's converter makes to the numbers of a tensor.
struct GgufChanges {
  // Rows per head, if the converter reorders the rows of each head: llama.cpp rotates adjacent
  // elements, and the checkpoint's model elements of the two halves of a head. 0: the rows are in
  // order.
  int paired_rows = 0;
  float addend = 0.0F;   // added to each number: the 1 that Gemma's norms add to their weights
  bool is_rate = false;  // the file has -exp(x) in the place of each number x
};

// The names of one model. A checkpoint has one tensor per expert; a file stacks the tensors of a
// layer's experts. The name of a stack is its tensors' name without the expert's number:
// "….mlp.experts.up_proj.weight".
class GgufNames {
 public:
  GgufNames(const GgufArchitecture& architecture, const DecoderConfig& decoder);

  // The checkpoint's name of a tensor in the file, for example "model.layers.3.mlp.up_proj.weight"
  // of "blk.3.ffn_up.weight"; the same name if there is no other.
  std::string in_checkpoint(std::string_view name) const;
  // The file's name of a tensor in the checkpoint, for errors; nullopt: none.
  std::optional<std::string> in_file(std::string_view name) const;
  // The changes to a tensor of the checkpoint.
  GgufChanges changes(std::string_view name) const;

 private:
  struct Pair {
    std::string file;
    std::string checkpoint;
  };
  std::vector<Pair> ends_;   // before ".weight" or ".bias"
  std::vector<Pair> parts_;  // after "blk.N." and "model.layers.N."
  float norm_addend_;        // DecoderConfig::norm_addend
  float final_norm_addend_;  // DecoderConfig::final_norm_addend
  int paired_rows_;          // GgufChanges::paired_rows of queries and keys
};

// The name of one expert's tensor in a stack, such as "….mlp.experts.7.up_proj.weight".
std::string expert_name(std::string_view stack, int64_t expert);

}  // namespace quire
