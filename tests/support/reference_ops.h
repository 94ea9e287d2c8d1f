#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/expert_ops.h"
#include "ops/latent_ops.h"
#include "ops/layer_tail_ops.h"
#include "ops/ops.h"
#include "ops/state_ops.h"
#include "ops/weight_store.h"

namespace quire::testing {

struct RoutedExpert {
  int32_t id = 0;
  double weight = 0.0;
};

// The experts of one token, by the definition of ExpertOps::route. bias: one number per expert, or
// empty.
std::vector<RoutedExpert> reference_route(const ExpertRouting& routing,
                                          std::span<const float> logits,
                                          std::span<const float> bias);

// Reference implementations of ops/: F32 activations, fp64 arithmetic, one plain loop each.
class ReferenceOps : public Ops,
                     public WeightStore,
                     public ExpertOps,
                     public LatentOps,
                     public StateOps {
 public:
  Stream& stream() override { return stream_; }
  WeightStore& weights() const override { return store_; }
  ExpertOps* experts() const override { return experts_; }
  LatentOps* latents() const override { return latents_; }
  StateOps* states() const override { return states_; }
  DType activation_dtype() const override { return DType::kF32; }

  int64_t quantized_bytes(const QuantizedForm& /*matrix*/) const override { return 0; }
  Result<DType> linear_dtype(const WeightScheme& /*scheme*/) const override { return DType::kF32; }
  bool needs_whole_blocks() const override { return false; }
  bool mixes_experts() const override { return true; }
  bool merges_shared_experts(const ExpertsShape& /*shape*/) const override { return false; }
  Status finish() override { return {}; }

  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override;
  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(
      std::span<const TensorView> matrices) override;
  Result<std::unique_ptr<Experts>> make_experts(ExpertsSource& source) override;
  Result<Tensor> make_vector(const TensorView& source) override;
  Result<Tensor> allocate(const Shape& shape, DType dtype) override;

  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out) override;
  void residual_norm(const ResidualNorm& norm, TensorView out) override;
  void linear(const Linear& w, TensorView x, TensorView out) override;
  void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) override;
  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin) override;
  void position_scales(const PositionScale& scale, const int32_t* positions,
                       TensorView out) override;
  void wide_norm(const WideNorm& norm) override;
  void rope_and_cache(const RopeAndCache& args) override;
  void gate(const Gating& gating) override;
  void latent_rope_and_cache(const LatentRopeAndCache& args) override;
  void gated_mul(Activation activation, TensorView gate_up, TensorView out) override;
  void gated_mul_columns(Activation activation, TensorView gate, TensorView up,
                         int64_t first_column, TensorView out) override;
  void route(const ExpertRouting& routing, TensorView logits, const float* bias, TensorView ids,
             TensorView weights) override;
  using StateOps::workspace_bytes;
  int64_t workspace_bytes(const ExpertsShape& /*shape*/,
                          int64_t /*max_num_tokens*/) const override {
    return 0;
  }
  void run_experts(const ExpertsCall& call) override;
  void short_conv(const ShortConv& conv) override;
  void delta_net(const DeltaNet& net) override;  // without drafts
  void soft_cap(float cap, TensorView x) override;
  void gather_rows(TensorView x, const int32_t* rows, TensorView out) override;
  void write_columns(TensorView x, TensorView out, int64_t first_column) override;

 private:
  Stream stream_;
  WeightStore& store_ = *this;
  ExpertOps* const experts_ = this;
  LatentOps* const latents_ = this;
  StateOps* const states_ = this;
};

// Computes layer tails as a device with a fused kernel does: the tail of layer i adds its output to
// the residual for layer i + 1.
class FusedTailOps final : public ReferenceOps, public LayerTailOps {
 public:
  LayerTailOps* layer_tails() const override { return tails_; }
  bool try_layer_tail(const LayerTail& tail) override {
    run_layer_tail(*this, tail);
    ++num_tails;
    return true;
  }
  int num_tails = 0;

 private:
  LayerTailOps* const tails_ = this;
};

// Operations of a device that computes neither experts nor matrices by head nor states.
class DenseOps final : public ReferenceOps {
 public:
  ExpertOps* experts() const override { return nullptr; }
  LatentOps* latents() const override { return nullptr; }
  StateOps* states() const override { return nullptr; }
};

}  // namespace quire::testing
