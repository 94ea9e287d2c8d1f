// Weights on the device, and their upload.
#pragma once

#include <memory>
#include <optional>

#include "base/thread_pool.h"
#include "cuda/base/memory.h"
#include "cuda/ops/op_kernels.h"
#include "ops/ops.h"

namespace quire::cuda {

// Uploads weights from host memory (usually a mapped file) to the device.
class WeightUpload {
 public:
  explicit WeightUpload(const LaunchContext& context) : context_(context) {}

  // Enqueues device = host, converted if the types differ. The caller may free the host tensor when
  // this returns: the data then is in pinned memory. The device copies one part while several
  // threads read the next.
  Status upload(const TensorView& host, const TensorView& device);
  // Enqueues the fill of the rows, which are contiguous on the device.
  Status fill(const RepeatedRows& rows, const TensorView& device);
  // Waits for all enqueued uploads, and frees threads and memory until the next one.
  Status release();

 private:
  Status start();

  LaunchContext context_;
  std::optional<ThreadPool> threads_;
  std::optional<PinnedRing> staging_;
  Buffer pool_;  // of the last filled rows
};

// A weight matrix on the device: row-major [out_features, in_features] in the activations' type.
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
