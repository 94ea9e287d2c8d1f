// Describes a family's weights as one list that maps the checkpoint's tensors to the model's
// members. Loading, the parameter count and the memory plan all use the list.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"
#include "model/quantization.h"
#include "quire/config.h"
#include "tensor/weight_source.h"

namespace quire {

// How a matrix is divided among ranks.
enum class Split { kNone, kRows, kColumns };

// A matrix of the checkpoint, [num_rows, MatrixBinding::num_columns].
struct MatrixPart {
  std::string name;  // without ".weight" and ".bias"
  int64_t num_rows = 0;
};

// One of `count` equal parts of each matrix, of its rows or columns as `split` says.
struct Portion {
  int idx = 0;
  int count = 1;
};

// Matrices stacked into one Linear.
struct MatrixBinding {
  std::unique_ptr<Linear>* linear = nullptr;  // null: the matrix is part of another structure
  std::vector<MatrixPart> parts;
  int64_t num_columns = 0;
  Split split = Split::kNone;
  bool has_bias = false;
  std::optional<WeightFormat> format = {};  // of its quantized parts; absent: there are none
  Portion portion = {};
};

// The matrices of a gated MLP: of an expert, for example.
struct MlpBinding {
  MatrixBinding gate_up;
  MatrixBinding down;
};

// All experts of one layer, made into one Experts.
struct ExpertsBinding {
  std::unique_ptr<Experts>* experts = nullptr;
  ExpertsShape shape;            // of all ranks together, without shared experts
  std::vector<MlpBinding> each;  // their `linear` is null
  // The MLP of the shared experts, whose inner dimension has one expert after the other. A device
  // that merges shared experts loads it as num_shared further experts, if its matrices are stored
  // as those of the others are; otherwise it becomes two Linears.
  int num_shared = 0;
  MlpBinding shared = {};
};

// The shape of `chosen` and shared experts together.
constexpr ExpertsShape with_shared_experts(ExpertsShape chosen, int num_shared) {
  chosen.num_experts += num_shared;
  chosen.top_k += num_shared;
  chosen.num_shared = num_shared;
  return chosen;
}

// A matrix whose rows are, by head, those of keys and then those of values, over latent vectors. It
// is kept in plain_dtype(), because the rows of keys are transposed, and scales per row or block
// are then no longer those of rows or blocks.
struct LatentBinding {
  std::unique_ptr<PerHeadLinear>* k_up;  // by head: [num_columns, key_rows], the transposed rows
  std::unique_ptr<PerHeadLinear>* v_up;  // by head: [value_rows, num_columns]
  MatrixBinding matrix;                  // `linear` is null
  int64_t key_rows = 0;                  // of each head
  int64_t value_rows = 0;
};

// The scales of a layer's keys and values in an FP8 KV cache, [1] each. A checkpoint has both or
// neither, and then they are empty.
struct KvScales {
  Tensor k;
  Tensor v;
};

Result<KvScales> make_kv_scales(const KvScaleValues& values, Ops& ops);

struct KvScalesBinding {
  KvScales* scales = nullptr;
  std::string attention;  // the name of the layer's attention, with a dot at its end
};

struct VectorBinding {
  Tensor* vector = nullptr;
  std::string name;
  int64_t size = 0;
  float addend = 0.0F;  // added to every element; 1 for norms that multiply by 1 + w
};

// Bindings that are loaded together: one layer, or the weights before or after the layers.
struct WeightGroup {
  bool is_layer = false;
  std::vector<MatrixBinding> matrices = {};
  std::vector<ExpertsBinding> experts = {};
  std::vector<LatentBinding> latents = {};
  std::vector<VectorBinding> vectors = {};
  std::vector<KvScalesBinding> kv_scales = {};
};

// The bindings point into the family's weights, which must outlive the list.
struct WeightList {
  std::vector<WeightGroup> groups;
  // Tensors with these name prefixes may be in the checkpoint but are not loaded.
  std::vector<std::string> ignored_prefixes;
};

// One tensor of the checkpoint.
struct TensorSpec {
  // kPlain: a matrix that is multiplied by its scales at load, into plain_dtype().
  enum class Kind { kMatrix, kPlain, kScales, kVector };
  std::string name;
  Shape shape;
  Kind kind = Kind::kMatrix;
  Split split = Split::kNone;
  std::optional<WeightFormat> format = {};  // MatrixBinding::format
  std::string matrix = {};                  // MatrixPart::name; empty: a vector or scales
  float addend = 0.0F;                      // VectorBinding::addend
  bool in_experts = false;                  // may be part of Experts
};

// The name of the spec's tensor in `source`, which may have left a matrix unquantized.
std::string stored_name(const TensorSpec& tensor, const WeightSource& source);

// All tensors that the checkpoint must have for this list, if all its matrices with a format are
// quantized.
std::vector<TensorSpec> list_tensors(const WeightList& list);

// Bytes of one rank's part of the tensors in the types that `ops` keeps, without the padding of the
// device's layout. Fails, naming the scheme, if the device does not compute with one of them.
Result<int64_t> estimate_weight_bytes(std::span<const TensorSpec> tensors,
                                      const WeightSource& source, const Ops& ops,
                                      const Parallel& parallel);

// Reads every tensor of the list from `source` and packs it for `ops`. A tensor's memory in the
// source is released once it is packed. Fails, naming the tensor and the architecture, if a tensor
// is missing, has another shape or type, or is left over.
Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadProgress& progress);

// The number of layers that have scales for an FP8 KV cache.
int num_kv_scales(const WeightSource& source);

// This rank's equal part of `total`, which must be a multiple of the number of ranks. Heads are
// stored one after another, so a part of the rows is a part of the heads if the number of heads is
// also a multiple.
constexpr Slice shard(int64_t total, const Parallel& parallel) {
  const int64_t count = total / parallel.size;
  return {count * parallel.rank, count};
}

// Slices a matrix together with its scales. Fails if the slice's border cuts a block that shares
// one scale, or if columns that have an order are sliced; `name` names the matrix in the error. Row
// slices are views of the same memory; column slices are copied into `copies`, which the result
// refers to.
Result<WeightView> slice_rows(const WeightView& matrix, const Slice& slice, std::string_view name);
Result<WeightView> slice_columns(const WeightView& matrix, const Slice& slice,
                                 std::string_view name, std::vector<Tensor>& copies);

}  // namespace quire
