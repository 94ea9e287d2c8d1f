// The operations of ops/latent_ops.h on a GPU, in both forms.
#pragma once

#include <vector>

#include "cuda/gemm/heads/heads_choice.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/operand_checks.h"
#include "ops/latent_ops.h"

namespace quire::cuda {

class CudaLatentOps final : public LatentOps, public LatentExpansionOps {
 public:
  // The library must outlive the object.
  CudaLatentOps(const LaunchContext& context, DType activation, CublasLt& cublas)
      : context_(context), check_{activation}, gemm_(context, cublas) {}

  PerHeadGemm& gemm() { return gemm_; }
  // Adds the products of per_head_linear() to `calls`, which outlives the recording; null ends it.
  void record_into(std::vector<PerHeadGemmCall>* calls) { recorded_ = calls; }

  // As latent_ops.h defines them.
  void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) override;
  void latent_rope_and_cache(const LatentRopeAndCache& args) override;
  LatentExpansionOps* expansion() override { return this; }
  void shared_linear(const PerHeadLinear& w, TensorView x, TensorView out) override;
  void shared_linear_transposed(const PerHeadLinear& w, TensorView x, TensorView out) override;

 private:
  void run_shared(const PerHeadLinear& w, const TensorView& x, int64_t x_width,
                  const TensorView& out, int64_t out_width, bool transposed);

  LaunchContext context_;
  OperandChecks check_;
  PerHeadGemm gemm_;
  std::vector<PerHeadGemmCall>* recorded_ = nullptr;
};

}  // namespace quire::cuda
