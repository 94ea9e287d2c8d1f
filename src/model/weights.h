// Describes a family's weights as one list that maps the checkpoint's tensors to the model's
// members. Loading, the parameter count and the memory plan all use the list.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "quire/config.h"
#include "tensor/weight_scheme.h"
#include "tensor/weight_source.h"

namespace quire {

// How a matrix is divided among ranks.
enum class Split { kNone, kRows, kColumns };

// How a checkpoint stores quantized matrices.
struct WeightFormat {
  WeightScheme scheme;
  std::string scales_suffix;  // name suffix of a matrix' scales: ".weight_scale"
};

// A matrix of the checkpoint, [num_rows, MatrixSlot::num_columns].
struct MatrixPart {
  std::string name;  // without ".weight" and ".bias"
  int64_t num_rows = 0;
};

// Matrices stacked into one Linear.
struct MatrixSlot {
  std::unique_ptr<Linear>* linear = nullptr;
  std::vector<MatrixPart> parts;
  int64_t num_columns = 0;
  Split split = Split::kNone;
  bool has_bias = false;
  std::optional<WeightFormat> format = {};  // absent: F32, F16 or BF16 without scales
};

struct VectorSlot {
  Tensor* vector = nullptr;
  std::string name;
  int64_t size = 0;
  float addend = 0.0F;  // added to every element; 1 for norms that multiply by 1 + w
};

// Slots that are loaded together: one layer, or the weights before or after the layers.
struct WeightGroup {
  bool is_layer = false;
  std::vector<MatrixSlot> matrices = {};
  std::vector<VectorSlot> vectors = {};
};

// The slots point into the family's weights, which must outlive the list.
struct WeightList {
  std::vector<WeightGroup> groups;
  // Tensors with these name prefixes may be in the checkpoint but are not loaded.
  std::vector<std::string> ignored_prefixes;
};

// One tensor of the checkpoint.
struct TensorSpec {
  enum class Kind { kMatrix, kScales, kVector };
  std::string name;
  Shape shape;
  Kind kind = Kind::kMatrix;
  Split split = Split::kNone;
};

// All tensors that the checkpoint must have for this list.
std::vector<TensorSpec> list_tensors(const WeightList& list);

// Reads every tensor of the list from `source` and packs it for `ops`. A tensor's memory in the
// source is released once it is packed. Fails, naming the tensor and the architecture, if a tensor
// is missing, has another shape or type, or is left over.
Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadProgress& progress);

}  // namespace quire
