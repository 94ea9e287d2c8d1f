// The weights of a GPU: uploaded, and packed or quantized as its kernels read them.
#pragma once

#include <memory>
#include <span>

#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/packed/packed_choice.h"
#include "cuda/ops/cuda_expert_ops.h"
#include "cuda/ops/op_kernels.h"
#include "ops/weight_store.h"

namespace quire::cuda {

// Without finish(), the upload keeps its threads and pinned memory.
class CudaWeightStore final : public WeightStore {
 public:
  // The runners of products must outlive the store. If `packed` is null, quantized weights are
  // expanded at load.
  CudaWeightStore(const LaunchContext& context, DType activation, GemmRunner& dense,
                  PackedGemm* packed, const CudaExpertOps& experts)
      : activation_(activation),
        dense_(dense),
        packed_(packed),
        experts_(experts),
        upload_(context) {}

  // See weight_store.h.
  int64_t quantized_bytes(const QuantizedForm& matrix) const override;
  Result<DType> linear_dtype(const WeightScheme& scheme) const override;
  bool needs_whole_blocks() const override { return true; }
  bool mixes_experts() const override { return false; }
  bool merges_shared_experts(const ExpertsShape& shape) const override {
    return experts_.merges_shared(shape);
  }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override;
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override;
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override;
  Result<Tensor> make_vector(const TensorView& source) override;
  Status finish() override { return upload_.release(); }

 private:
  Result<std::unique_ptr<Linear>> make_packed(const LinearSource& source);

  DType activation_;
  GemmRunner& dense_;
  PackedGemm* packed_;
  const CudaExpertOps& experts_;
  WeightUpload upload_;
};

}  // namespace quire::cuda
