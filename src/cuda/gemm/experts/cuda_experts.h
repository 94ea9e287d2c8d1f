// The experts of a layer on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/experts/expert_kernels.h"
#include "cuda/gemm/packed/packed_matrices.h"
#include "ops/expert_ops.h"

namespace quire::cuda {

// All experts of a layer in one tensor per product, or packed.
class CudaExperts final : public Experts {
 public:
  // Enqueues the upload, one matrix at a time. Weights without scales and biases are converted to
  // `dtype`; quantized weights stay packed. Fails as CudaLinear::load and PackedMatrices::load do,
  // and with kUnimplemented if the experts have different types or formats, or only one of the two
  // products is quantized.
  static Result<std::unique_ptr<CudaExperts>> load(ExpertsSource& source, DType dtype,
                                                   WeightUpload& upload);

  const ExpertsShape& shape() const override { return shape_; }
  size_t num_bytes() const override;
  // If is_packed(), only the biases are set.
  const ExpertMatrices& matrices() const { return matrices_; }
  bool is_packed() const { return gate_up_.packed.has_value(); }
  const PackedMatrices& packed_gate_up() const { return *gate_up_.packed; }
  const PackedMatrices& packed_down() const { return *down_.packed; }
  bool has_fp8_weights() const;
  // Whether both products have weights of the same type.
  bool has_one_type() const;

 private:
  // The matrices of one of the two products.
  struct Stack {
    Tensor weights;                        // [num_experts, rows, columns]
    Tensor scales;                         // [num_experts, scales of an expert], or empty
    ScalesLayout layout;                   // of the scales of an expert
    std::optional<PackedMatrices> packed;  // instead of weights and scales
    Tensor biases;                         // [num_experts, rows], or empty
  };

  explicit CudaExperts(const ExpertsShape& shape) : shape_(shape) {}
  // Allocates the stack with the first expert. All other experts must have its type and scale
  // layout.
  static Status add(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                    WeightUpload& upload, Stack& stack);
  static Status add_packed(int idx, const LinearSource& source, const Shape& shape,
                           WeightUpload& upload, Stack& stack);
  static Status add_biases(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                           WeightUpload& upload, Stack& stack);

  ExpertsShape shape_;
  Stack gate_up_;
  Stack down_;
  ExpertMatrices matrices_;
};

}  // namespace quire::cuda
