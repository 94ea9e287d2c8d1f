// Makes the weights that a device's operations read, and decides how the device keeps them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "ops/expert_ops.h"
#include "ops/latent_ops.h"
#include "ops/ops.h"
#include "quire/status.h"
#include "tensor/gguf_blocks.h"
#include "tensor/tensor.h"
#include "tensor/weight_source.h"

namespace quire {

// A contiguous range of a weight's rows or columns.
struct Slice {
  int64_t first = 0;
  int64_t count = 0;
};

// Rows that repeat a pool of numbers in host memory (load_format dummy): element (i, j) is
// pool[(first + i * row_stride + j) % length of pool].
struct RepeatedRows {
  TensorView pool;
  int64_t first = 0;
  int64_t row_stride = 0;
  Shape shape;
};

// The following four structs are the forms of a Linear's numbers: matrices [rows_i, in_features]
// whose rows are stacked in order (q, k and v become one Linear).
//
// Values in host memory, all of one scheme, with or without scales.
struct StoredMatrices {
  std::span<const WeightView> each;
};
// Quantized blocks in host memory, each matrix of its own type.
struct MatricesInBlocks {
  std::span<const BlockMatrix> each;
};
// Rows that repeat a pool. Only the pool is in memory.
struct RepeatedMatrices {
  std::span<const RepeatedRows> each;
};
// F32, F16 or BF16 matrices that the store quantizes at load to `scheme`, E4M3 with a scale per
// row, with the same bits as quantize_rows() of host_matrices.h. Whole rows are quantized, and the
// Linear gets `columns` of them, so that a row's scale does not depend on the number of ranks.
struct MatricesToQuantize {
  std::variant<StoredMatrices, RepeatedMatrices> from;
  WeightScheme scheme;
  Slice columns;
};

struct LinearSource {
  std::variant<StoredMatrices, MatricesInBlocks, RepeatedMatrices, MatricesToQuantize> numbers;
  std::span<const TensorView> biases = {};  // empty, or one per matrix: [rows_i]; data null: zeros
};

// The source of Experts' numbers. It is read one matrix at a time, in ascending order, gate_up
// before down, so that host memory need not hold a whole layer twice.
class ExpertsSource {
 public:
  virtual ~ExpertsSource() = default;
  virtual const ExpertsShape& shape() const = 0;
  // The matrices of expert `idx`, [2 * intermediate_size, hidden_size] (the rows of gate, then of
  // up) and [hidden_size, intermediate_size]; valid until the next call. The experts may differ in
  // their schemes. If the experts have biases, gate_up has one per matrix. The bias of down has
  // data only on the first of several ranks.
  virtual Result<LinearSource> gate_up(int idx) = 0;
  virtual Result<LinearSource> down(int idx) = 0;
};

// The scheme of a matrix of integers (is_integer()) and the type of its scales, as stored.
struct IntegerForm {
  WeightScheme scheme;
  DType scales = DType::kF32;
};
// A matrix of quantized numbers: in blocks of a type, or of integers.
struct QuantizedForm {
  Shape shape;
  std::variant<const GgufBlockType*, IntegerForm> numbers;
};

class WeightStore {
 public:
  virtual ~WeightStore() = default;

  // The following functions report how the store keeps a matrix, for the plan of a load.
  //
  // The bytes that the store keeps for a quantized matrix; 0 if the device does not compute with
  // its numbers. The caller then expands the matrix to its plain_dtype().
  virtual int64_t quantized_bytes(const QuantizedForm& matrix) const = 0;
  // The type of the values that the store keeps for a matrix of this scheme, which must not be of
  // integers. Fails with kUnimplemented, naming the scheme, if the device does not compute with it.
  virtual Result<DType> linear_dtype(const WeightScheme& scheme) const = 0;
  // Whether a matrix of FP8 values with a scale per block must have whole blocks, except for the
  // last ones along either axis. Otherwise a border between ranks may cut blocks into smaller ones.
  virtual bool needs_whole_blocks() const = 0;
  // Whether the experts of one layer may be quantized in different formats, and some of their
  // matrices not at all. Otherwise make_experts takes quantized experts only if all their matrices
  // are quantized, and all experts have the same formats.
  virtual bool mixes_experts() const = 0;
  // Whether the device computes shared experts faster as further experts of every token than as a
  // gated MLP of their own. `shape` describes all experts together.
  virtual bool merges_shared_experts(const ExpertsShape& shape) const = 0;

  // The functions below copy or convert their source, whose pages may be freed once they return.
  //
  // Fails as linear_dtype() does. Also fails, with kInvalidArgument, if shapes or scales do not
  // match each other, or if a matrix to quantize has an infinity or a NaN.
  virtual Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) = 0;
  // Makes one matrix per head, [out_features, in_features] in F32, F16 or BF16. Call it only if the
  // device has LatentOps.
  virtual Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) = 0;
  // Makes the experts of one layer. Fails like make_linear(). Call it only with ExpertOps.
  virtual Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) = 0;
  // Copies a small vector (norm weights, inverse frequencies) to the device as F32.
  virtual Result<Tensor> make_vector(const TensorView& source) = 0;

  // Ends a load: waits for the copies, and frees the memory and threads that only a load needs.
  // More weights may be made later, which allocates these again.
  virtual Status finish() = 0;
};

}  // namespace quire
