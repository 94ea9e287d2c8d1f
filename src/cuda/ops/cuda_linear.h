// Weights on the device, and their upload.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

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

// Allocates a tensor on the device, not initialized.
Result<Tensor> device_tensor(const Shape& shape, DType dtype);

// Fails, naming the scheme, if it is not computed on GPUs.
Status check_scheme(const WeightScheme& scheme);

// The scale of every row of the stacked matrices, whose schemes have a scale per tensor or per row.
std::vector<float> row_scales(std::span<const WeightView> matrices);

// The type in which CudaLinear::load(source, dtype) keeps the weights; fails as it does.
Result<DType> kept_dtype(const LinearSource& source, DType dtype);

// Enqueues the upload of a matrix without a bias to `weights` [out_features, in_features], whose
// type is kept_dtype(), and of the scale of each row to `scales` if that is E4M3.
Status upload_matrix(const LinearSource& source, const TensorView& weights,
                     const TensorView& scales, WeightUpload& upload);

// A weight matrix on the device: row-major [out_features, in_features] in the activations' type, or
// in E4M3 with an F32 scale per row. A scale per tensor is repeated, so that stacked matrices with
// different scales need nothing else.
class CudaLinear final : public Linear {
 public:
  // Enqueues the upload of the weights. Values with scales keep their type; others get `dtype`, as
  // does the bias. Fails with kInvalidArgument if the shapes or the schemes of the blocks do not
  // match, and with kUnimplemented for schemes that a GPU does not compute with.
  static Result<std::unique_ptr<CudaLinear>> load(const LinearSource& source, DType dtype,
                                                  WeightUpload& upload, CudaStream& stream);

  int64_t in_features() const override { return weights_.view.shape[1]; }
  int64_t out_features() const override { return weights_.view.shape[0]; }
  size_t num_bytes() const override {
    return weights_.buffer.num_bytes() + scales_.buffer.num_bytes() + bias_.buffer.num_bytes();
  }

  const TensorView& weights() const { return weights_.view; }
  const TensorView& scales() const { return scales_.view; }  // [out_features]; data null: none
  const TensorView& bias() const { return bias_.view; }      // [out_features]; data null: none

 private:
  CudaLinear() = default;

  Tensor weights_;
  Tensor scales_;
  Tensor bias_;
};

// Every Linear of this device's Ops is a CudaLinear.
inline const CudaLinear& as_cuda(const Linear& linear) {
  return static_cast<const CudaLinear&>(linear);
}

}  // namespace quire::cuda
