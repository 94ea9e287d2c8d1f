// The experts of a layer on the device, and the choice of the kernels that compute them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "cuda/ops/cuda_linear.h"
#include "cuda/ops/expert_kernels.h"
#include "ops/ops.h"

namespace quire::cuda {

// All experts of a layer in one tensor per product.
class CudaExperts final : public Experts {
 public:
  // Enqueues the upload, one matrix at a time. Weights without scales get `dtype`. Fails as
  // CudaLinear::load does, and if some experts have scales and others have none.
  static Result<std::unique_ptr<CudaExperts>> load(ExpertsSource& source, DType dtype,
                                                   WeightUpload& upload);

  const ExpertsShape& shape() const override { return shape_; }
  size_t num_bytes() const override;
  const ExpertMatrices& matrices() const { return matrices_; }
  bool has_fp8_weights() const;
  // Whether both products have weights of the same type.
  bool has_one_type() const;

 private:
  // The matrices of one of the two products.
  struct Stack {
    Tensor weights;  // [num_experts, rows, columns]
    Tensor scales;   // [num_experts, rows], or empty
  };

  explicit CudaExperts(const ExpertsShape& shape) : shape_(shape) {}
  // Allocates the stack with the first expert, whose type the others must have.
  static Status add(int idx, const LinearSource& source, const Shape& shape, DType dtype,
                    WeightUpload& upload, Stack& stack);

  ExpertsShape shape_;
  Stack gate_up_;
  Stack down_;
  ExpertMatrices matrices_;
};

// Computes Ops::experts: few tokens by run_few_experts(), more by grouped products of sorted rows
// on Hopper's tensor cores where those take the operands.
class ExpertsRunner {
 public:
  static Result<ExpertsRunner> create(const LaunchContext& context);

  int64_t workspace_bytes(const ExpertsShape& shape, DType activation,
                          int64_t max_num_tokens) const;
  // Enqueues; capturable.
  void run(const ExpertsCall& call);

 private:
  // The parts of ExpertsCall::workspace.
  struct Workspace {
    TensorView product;  // [num_pairs, intermediate_size]
    // The rows of x in the order of the experts, then their outputs; data null: not needed.
    TensorView rows;       // [num_pairs, hidden_size]
    TensorView quantized;  // E4M3, of x, then of product
    TensorView scales;     // F32 [num_pairs], of the quantized rows
    SortedPairs sorted;
    int64_t num_bytes = 0;
  };

  // The operands of one grouped product; the scales are those of wgmma::GroupedParams.
  struct GroupedOperands {
    TensorView w;     // [num_experts, rows, columns]
    TensorView rows;  // [num_pairs, columns], sorted
    const float* w_scales = nullptr;
    const float* x_scales = nullptr;
    const int32_t* x_scale_rows = nullptr;
  };

  explicit ExpertsRunner(const LaunchContext& context) : context_(context) {}
  // Whether grouped products can compute experts of this shape. With FP8 weights they round
  // activations to FP8, with one scale per row.
  bool takes_grouped(const ExpertsShape& shape, DType activation) const;
  bool runs_grouped(const CudaExperts& experts, const ExpertsCall& call) const;
  Workspace workspace(const ExpertsShape& shape, DType activation, int64_t num_tokens,
                      std::byte* start) const;
  Status run_grouped(const CudaExperts& experts, const ExpertsCall& call,
                     const Workspace& workspace);
  // x in E4M3 with a scale per row, in the workspace.
  TensorView quantize(const TensorView& x, const Workspace& workspace) const;
  // out = rows * w^T of each expert; with is_gated, out = silu(gate) * up. tokens: those of a tile.
  Status multiply(const GroupedOperands& operands, const SortedPairs& sorted, bool is_gated,
                  int tokens, const TensorView& out);
  void warn_of_few(const CudaExperts& experts, int64_t num_tokens);

  LaunchContext context_;
  int num_sms_ = 0;
  bool has_wgmma_ = false;
  bool has_warned_ = false;
};

}  // namespace quire::cuda
