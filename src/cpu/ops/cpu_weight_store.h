// The weights of a CPU: packed in the order in which its kernels read them.
#pragma once

#include <memory>
#include <span>

#include "cpu/ops/cpu_latent_ops.h"
#include "cpu/ops/products.h"
#include "ops/weight_store.h"

namespace quire::cpu {

class CpuWeightStore final : public WeightStore {
 public:
  // The products and operations that use the weights must outlive the store.
  CpuWeightStore(Products& products, CpuLatentOps& latents)
      : products_(products), latents_(latents) {}

  int64_t quantized_bytes(const QuantizedForm& matrix) const override;
  Result<DType> linear_dtype(const WeightScheme& scheme) const override {
    return plain_dtype(scheme);
  }
  bool needs_whole_blocks() const override { return false; }
  bool mixes_experts() const override { return true; }
  bool merges_shared_experts(const ExpertsShape& /*shape*/) const override { return false; }
  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override {
    return products_.make_linear(source);
  }
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override {
    return latents_.make_per_head_linear(matrices);
  }
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override;
  Result<Tensor> make_vector(const TensorView& source) override;
  Status finish() override { return {}; }

 private:
  Products& products_;
  CpuLatentOps& latents_;
};

}  // namespace quire::cpu
