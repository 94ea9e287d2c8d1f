// A family's weights as one list: which of the checkpoint's tensors go where. The list drives
// loading, the number of parameters and the memory plan.
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

// Which part of a matrix a rank holds.
enum class Split { kNone, kRows, kColumns };

// How a checkpoint stores quantized matrices.
struct WeightFormat {
  WeightScheme scheme;
  std::string scales_suffix;  // of the name of a matrix' scales: ".weight_scale"
};

// One of the checkpoint's matrices, [num_rows, MatrixSlot::num_columns].
struct MatrixPart {
  std::string name;  // without ".weight" and ".bias"
  int64_t num_rows = 0;
};

// Matrices that are stacked into one Linear.
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
  float addend = 0.0F;  // joins every element; 1 for norms that multiply by 1 + w
};

// Slots that are loaded one after another: a layer, or what comes before or after the layers.
struct WeightGroup {
  bool is_layer = false;
  std::vector<MatrixSlot> matrices = {};
  std::vector<VectorSlot> vectors = {};
};

// The slots point into the family's weights, which outlive the list.
struct WeightList {
  std::vector<WeightGroup> groups;
  // Tensors whose names begin so may be in the checkpoint and are not loaded.
  std::vector<std::string> ignored_prefixes;
};

// One of the checkpoint's tensors.
struct TensorSpec {
  enum class Kind { kMatrix, kScales, kVector };
  std::string name;
  Shape shape;
  Kind kind = Kind::kMatrix;
  Split split = Split::kNone;
};

// Every tensor of the list that the checkpoint must have.
std::vector<TensorSpec> list_tensors(const WeightList& list);

// Takes every tensor of the list out of `source` and packs it for `ops`. A tensor's memory in the
// source is released once it is packed. A tensor that is missing, of another shape or type, or left
// over is an error that names it and the architecture.
Status load_weights(const WeightList& list, std::string_view architecture, WeightSource& source,
                    Ops& ops, const Parallel& parallel, const LoadProgress& progress);

}  // namespace quire
