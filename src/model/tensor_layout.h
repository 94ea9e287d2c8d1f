// The names and forms in which a family's checkpoints store the tensors that a decoder reads, as
// plain data, and the source that presents them under the decoder's names. The rest of the code
// then sees one form: the names of Llama, "model.layers.3.self_attn.q_proj.weight", and one tensor
// per matrix.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quire/status.h"

namespace quire {

class WeightSource;
struct TensorSpec;

// Replaces whole components of a name, such as "block_sparse_moe" by "mlp", or
// "model.language_model" by "model". Several renames may apply to a name, each to other components;
// of two that match at the same place, the first applies. Two with the same `decoder` are spellings
// of different versions. A component that no rename matches stays as it is.
struct Rename {
  std::string stored;        // empty: the checkpoint leaves out `decoder` at the start of its names
  std::string decoder = {};  // empty: the components are removed
};

// Matrices whose rows are stored as one matrix. The decoder determines the number of rows of each.
// The scales, zero points and bias of a stored matrix are divided as its values are. If a
// checkpoint has the parts as separate matrices, these are read instead.
struct FusedMatrix {
  // The last components of the name after the renames, without ".weight": "self_attn.qkv_proj".
  // Tensors without a dot before their suffix are found too: "…experts.gate_up_proj", which has the
  // values, "…experts.gate_up_proj_bias" and "…experts.gate_up_proj_scale_inv".
  std::string stored;
  // The decoder's names: {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}. With a star
  // for the number of an expert, as in "mlp.experts.*.gate_proj", the tensors have one more axis,
  // the first, over the experts of the layer.
  std::vector<std::string> parts;
  // The values are stored as [columns, rows] or, if that is their shape, as [rows, columns]:
  // transformers saves some matrices in another order than they were published. Such a matrix may
  // not be quantized, except in MXFP4, which is stored by rows. Biases stay as they are.
  bool is_transposed = false;
  // The rows are stored as this number of equal groups, each with a share of each part's rows: a
  // part has its rows of the first group, then of the second, and so on. Qwen3.5 stores queries and
  // the gates of their outputs so, head by head; gpt-oss gates and ups, row by row.
  int num_groups = 1;
};

struct TensorLayout {
  std::vector<Rename> renames = {};
  std::vector<FusedMatrix> fused = {};
  // The beginnings of stored names that are not loaded: of vision towers, and of layers that only
  // draft.
  std::vector<std::string> ignored_prefixes = {};

  // Experts with random weights are in MXFP4. In a checkpoint, the tensors show whether they are.
  bool has_mxfp4_experts = false;

  bool is_plain() const { return renames.empty() && fused.empty() && ignored_prefixes.empty(); }
};

// Whether the checkpoint has the tensor that the decoder calls `name` as a tensor of its own, not
// as a part of a fused matrix.
bool stores(const WeightSource& checkpoint, const TensorLayout& layout, std::string_view name);

// The tensors of a checkpoint as the decoder with `tensors` reads them. Errors name the tensor in
// the file. A part of rows is a view of the file's tensor if possible, and otherwise a copy that is
// kept until its release. The file's tensor is released with the last of its parts. Random weights
// have the decoder's names already. Matrices in MXFP4 are presented in blocks (mxfp4_weights.h).
// Logs how many tensors are not loaded. Fails if two tensors have one name for the decoder, or if
// the parts of a matrix cannot be separated.
Result<std::unique_ptr<WeightSource>> apply_layout(std::unique_ptr<WeightSource> source,
                                                   const TensorLayout& layout,
                                                   std::span<const TensorSpec> tensors);

}  // namespace quire
