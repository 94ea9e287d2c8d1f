// Runs the products of CudaOps whose kernels are measured, and the fused tails of layers.
#pragma once

#include <memory>
#include <utility>

#include "cuda/gemm/dense/cublas_lt.h"
#include "cuda/gemm/dense/dense_choice.h"
#include "cuda/gemm/heads/heads_choice.h"
#include "cuda/gemm/tail/tail_choice.h"

namespace quire::cuda {

// The products of a gated MLP.
struct MlpCalls {
  GemmCall gate_up;  // its gated_out: the product of gate and up, if the activation is SiLU
  GemmCall down;
  GemmCall gated_down;  // down, after the product of gate and up
};

// All functions enqueue, and can be captured.
class ProductRunner {
 public:
  virtual ~ProductRunner() = default;

  virtual void run(const GemmCall& call) = 0;
  virtual void run(const MlpCalls& mlp) = 0;
  virtual void run(const PerHeadGemmCall& call) = 0;
  // Returns true if the tail was enqueued as one kernel. Otherwise nothing was enqueued. has_sums:
  // whether the tail's sums over the ranks would be enqueued now.
  virtual bool try_run(const LayerTail& tail, bool has_sums) = 0;
};

// Runs each product by the kernel that was measured to be the fastest, or by a fixed rule before
// the measurement.
class MeasuredProducts final : public ProductRunner {
 public:
  MeasuredProducts(const LaunchContext& context, std::unique_ptr<GemmRunner> dense,
                   LayerTailChoice tails, std::shared_ptr<MeasuredChoices> choices)
      : dense_(std::move(dense)),
        heads_(context, dense_->cublas(), std::move(choices)),
        tails_(std::move(tails)) {}

  GemmRunner& dense() { return *dense_; }
  PerHeadGemm& heads() { return heads_; }
  LayerTailChoice& tails() { return tails_; }

  void run(const GemmCall& call) override { dense_->run(call); }
  void run(const MlpCalls& mlp) override {
    dense_->run(dense_->run_gated(mlp.gate_up) ? mlp.down : mlp.gated_down);
  }
  void run(const PerHeadGemmCall& call) override { heads_.run(call); }
  bool try_run(const LayerTail& tail, bool has_sums) override {
    return has_sums && tails_.try_run(tail);
  }

 private:
  std::unique_ptr<GemmRunner> dense_;
  PerHeadGemm heads_;
  LayerTailChoice tails_;
};

}  // namespace quire::cuda
