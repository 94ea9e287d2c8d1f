// The operations of ops/latent_ops.h on a CPU. Attention on a CPU has no expanded form.
#pragma once

#include <memory>
#include <span>

#include "cpu/ops/per_head_linear.h"
#include "cpu/ops/products.h"
#include "ops/latent_ops.h"

namespace quire::cpu {

class CpuLatentOps final : public LatentOps {
 public:
  // `products` must outlive the object.
  explicit CpuLatentOps(Products& products) : products_(products) {}

  Result<std::unique_ptr<PerHeadLinear>> make_per_head_linear(std::span<const TensorView> matrices);

  // See latent_ops.h.
  void per_head_linear(const PerHeadLinear& w, TensorView x, TensorView out) override;
  void latent_rope_and_cache(const LatentRopeAndCache& args) override;

 private:
  void run_head_block(const HeadBlock& block, const CpuPerHeadLinear& w, const TensorView& x,
                      const TensorView& out);

  Products& products_;
  Buffer head_rows_;  // F32, the gathered rows of x and of out of one HeadBlock
};

}  // namespace quire::cpu
