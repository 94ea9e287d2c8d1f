// Matrices by head on the device, and the choice of the kernel of their products: the skinny kernel
// for few rows, cuBLASLt's strided batches, or the generic kernel. cuBLASLt computes all products
// that have one input for all heads.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cuda/base/memory.h"
#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/cuda_linear.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "ops/latent_ops.h"

namespace quire::cuda {

// The matrices of all heads, one below the other.
class CudaPerHeadLinear final : public PerHeadLinear {
 public:
  // Enqueues the upload, as CudaLinear::load does.
  static Result<std::unique_ptr<CudaPerHeadLinear>> load(std::span<const TensorView> matrices,
                                                         DType dtype, WeightUpload& upload);

  int num_heads() const override { return num_heads_; }
  int64_t in_features() const override { return rows_->in_features(); }
  int64_t out_features() const override { return rows_->out_features() / num_heads_; }
  size_t num_bytes() const override { return rows_->num_bytes(); }

  TensorView weights() const;  // [num_heads, out_features, in_features]

 private:
  CudaPerHeadLinear(int num_heads, std::unique_ptr<CudaLinear> rows)
      : num_heads_(num_heads), rows_(std::move(rows)) {}

  int num_heads_;
  std::unique_ptr<CudaLinear> rows_;
};

// Every PerHeadLinear of this device's Ops is a CudaPerHeadLinear.
inline const CudaPerHeadLinear& as_cuda(const PerHeadLinear& linear) {
  return static_cast<const CudaPerHeadLinear&>(linear);
}

class PerHeadGemm {
 public:
  // The library must outlive the PerHeadGemm.
  PerHeadGemm(const LaunchContext& context, CublasLt& cublas,
              std::shared_ptr<MeasuredChoices> choices)
      : context_(context), cublas_(cublas), shared_(cublas), choices_(std::move(choices)) {}

  // Enqueues; capturable.
  void run(const PerHeadGemmCall& call);
  // Like run(), with one input x [m, k] for all heads, by cuBLASLt. With `transposed`, w is [heads,
  // k, n].
  void run_shared(const PerHeadGemmCall& call, bool transposed);
  // Chooses the kernel for calls of one shape at `num_rows` rows, as GemmRunner::tune does. Cannot
  // be captured. Overwrites outputs.
  Status tune(std::span<const PerHeadGemmCall> calls, int64_t num_rows);

 private:
  // The kernels that can compute the product. The first one is the choice without measurement.
  std::vector<GemmChoice> candidates(const PerHeadGemmCall& call, int64_t num_rows,
                                     int max_algorithms);
  Status run_choice(const PerHeadGemmCall& call, const GemmChoice& choice);
  Result<GemmChoice> measure(std::span<const PerHeadGemmCall> calls, int64_t num_rows);

  LaunchContext context_;
  CublasLt& cublas_;
  BucketedProducts shared_;
  const std::shared_ptr<MeasuredChoices> choices_;
  std::map<std::pair<GemmShape, int64_t>, GemmChoice> chosen_;  // by shape and row bucket
};

}  // namespace quire::cuda
