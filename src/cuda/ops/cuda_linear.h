// A weight matrix on the device: row-major [out_features, in_features] in the activations' type.
#pragma once

#include <memory>

#include "cuda/ops/weight_upload.h"
#include "ops/ops.h"

namespace quire::cuda {

class CudaLinear final : public Linear {
 public:
  // Enqueues the upload of the weights. Fails with kInvalidArgument if the shapes of the blocks do
  // not match.
  static Result<std::unique_ptr<CudaLinear>> load(const LinearSource& source, DType dtype,
                                                  WeightUpload& upload, CudaStream& stream);

  int64_t in_features() const override { return weights_.shape[1]; }
  int64_t out_features() const override { return weights_.shape[0]; }
  size_t num_bytes() const override { return memory_.num_bytes() + bias_memory_.num_bytes(); }

  const TensorView& weights() const { return weights_; }
  const TensorView& bias() const { return bias_; }  // [out_features]; data null: none

 private:
  CudaLinear() = default;

  Buffer memory_;
  Buffer bias_memory_;
  TensorView weights_;
  TensorView bias_;
};

// Every Linear of this device's Ops is a CudaLinear.
inline const CudaLinear& as_cuda(const Linear& linear) {
  return static_cast<const CudaLinear&>(linear);
}

}  // namespace quire::cuda
