#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/ops.h"

namespace quire::testing {

struct RoutedExpert {
  int32_t id = 0;
  double weight = 0.0;
};

// The experts of one token, by the definition of Ops::route. bias: one number per expert, or empty.
std::vector<RoutedExpert> reference_route(const ExpertRouting& routing,
                                          std::span<const float> logits,
                                          std::span<const float> bias);

// Reference implementations of ops/ops.h: F32 activations, fp64 arithmetic, one plain loop each.
class ReferenceOps : public Ops {
 public:
  DType activation_dtype() const override { return DType::kF32; }
  Result<DType> linear_dtype(const WeightScheme& /*scheme*/) const override { return DType::kF32; }

  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override;
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override;
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override;
  Result<int64_t> experts_workspace_bytes(const ExpertsShape& /*shape*/,
                                          int64_t /*max_num_tokens*/) const override {
    return 0;
  }
  Result<Tensor> make_vector(const TensorView& source) override;
  Result<Tensor> allocate(const Shape& shape, DType dtype) override;

  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out,
             Stream& stream) override;
  void rms_norm(TensorView x, const float* weight, float eps, TensorView out,
                Stream& stream) override;
  void add_rms_norm(TensorView residual, TensorView delta, const float* weight, float eps,
                    TensorView out, Stream& stream) override;
  void linear(const Linear& w, TensorView x, TensorView out, Stream& stream) override;
  void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out,
                       Stream& stream) override;
  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin, Stream& stream) override;
  void rope_and_cache(const RopeAndCache& args, Stream& stream) override;
  void latent_rope_and_cache(const LatentRopeAndCache& args, Stream& stream) override;
  void gated_mul(Activation activation, TensorView gate_up, TensorView out,
                 Stream& stream) override;
  void route(const ExpertRouting& routing, TensorView logits, const float* bias, TensorView ids,
             TensorView weights, Stream& stream) override;
  void experts(const ExpertsCall& call, Stream& stream) override;
  void soft_cap(float cap, TensorView x, Stream& stream) override;
  void gather_rows(TensorView x, const int32_t* rows, TensorView out, Stream& stream) override;
  void write_columns(TensorView x, TensorView out, int64_t first_column, Stream& stream) override;

 private:
  // Writes out the repeated rows, and quantizes the matrices that are to be quantized.
  Result<std::unique_ptr<Linear>> make_expanded_linear(const LinearSource& source);
};

// Computes layer tails as a device with a fused kernel does: the tail of layer i adds its output to
// the residual for layer i + 1.
class FusedTailOps final : public ReferenceOps {
 public:
  bool try_layer_tail(const LayerTail& tail, Stream& stream) override {
    run_layer_tail(*this, tail, stream);
    ++num_tails;
    return true;
  }
  int num_tails = 0;
};

// Operations of a device that computes neither experts nor matrices by head.
class DenseOps final : public ReferenceOps {
 public:
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override {
    return Ops::make_per_head_linear(matrices);
  }
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override {
    return Ops::make_experts(source);
  }
  Result<int64_t> experts_workspace_bytes(const ExpertsShape& shape,
                                          int64_t max_num_tokens) const override {
    return Ops::experts_workspace_bytes(shape, max_num_tokens);
  }
};

}  // namespace quire::testing
