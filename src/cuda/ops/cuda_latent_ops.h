// The operations of ops/latent_ops.h on a GPU, in both forms.
#pragma once

#include "cuda/ops/op_kernels.h"
#include "cuda/ops/operand_checks.h"
#include "cuda/ops/product_runner.h"
#include "ops/latent_ops.h"

namespace quire::cuda {

class CudaLatentOps final : public LatentOps, public LatentExpansionOps {
 public:
  // `products` must outlive the object.
  CudaLatentOps(const LaunchContext& context, DType activation, MeasuredProducts& products)
      : context_(context), check_{activation}, products_(&products), shared_(products.heads()) {}

  // Makes `runner` run the products of per_head_linear() from now on.
  void run_products_by(ProductRunner& runner) { products_ = &runner; }

  // See latent_ops.h.
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
  ProductRunner* products_;
  PerHeadGemm& shared_;  // runs products with one input for all heads
};

}  // namespace quire::cuda
