#pragma once

#include <memory>

#include "ops/ops.h"

namespace quire::testing {

// Reference implementations of ops/ops.h: F32 activations, fp64 arithmetic, one plain loop each.
class ReferenceOps : public Ops {
 public:
  DType activation_dtype() const override { return DType::kF32; }
  DType linear_dtype(const WeightScheme& /*scheme*/) const override { return DType::kF32; }

  Result<std::unique_ptr<Linear>> make_linear(const LinearSource& source) override;
  Result<Tensor> make_vector(const TensorView& source) override;
  Result<Tensor> allocate(const Shape& shape, DType dtype) override;

  void embed(const Linear& table, const int32_t* ids, float scale, TensorView out,
             Stream& stream) override;
  void rms_norm(TensorView x, const float* weight, float eps, TensorView out,
                Stream& stream) override;
  void add_rms_norm(TensorView residual, TensorView delta, const float* weight, float eps,
                    TensorView out, Stream& stream) override;
  void linear(const Linear& w, TensorView x, TensorView out, Stream& stream) override;
  void rope_angles(const float* inv_freq, float attention_factor, const int32_t* positions,
                   TensorView cos_sin, Stream& stream) override;
  void rope_and_cache(const RopeAndCache& args, Stream& stream) override;
  void gated_mul(Activation activation, TensorView gate_up, TensorView out,
                 Stream& stream) override;
  void soft_cap(float cap, TensorView x, Stream& stream) override;
  void gather_rows(TensorView x, const int32_t* rows, TensorView out, Stream& stream) override;
  void write_columns(TensorView x, TensorView out, int64_t first_column, Stream& stream) override;
};

}  // namespace quire::testing
