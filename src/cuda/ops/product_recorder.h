// Records the products of a step, and measures their kernels.
#pragma once

#include <span>
#include <vector>

#include "cuda/ops/product_runner.h"
#include "ops/ops.h"

namespace quire::cuda {

class ProductRecorder final : public ProductRunner {
 public:
  // `products` runs what is recorded, and must outlive the recorder.
  ProductRecorder(MeasuredProducts& products, bool has_ranks)
      : products_(products), has_ranks_(has_ranks) {}

  // See product_runner.h.
  void run(const GemmCall& call) override;
  void run(const MlpCalls& mlp) override;
  void run(const PerHeadGemmCall& call) override;
  // False: the tail runs as separate products, so that they are recorded too.
  bool try_run(const LayerTail& tail, bool has_sums) override;

  // Measures every kernel that can compute the recorded products at these numbers of rows
  // (ascending), and lets `products` use the fastest. Cannot be captured; waits, and overwrites the
  // outputs of the products. `ops` enqueues the separate kernels of a layer's tail.
  Status tune(std::span<const int> row_counts, Ops& ops);

 private:
  void record(GemmCall call);

  MeasuredProducts& products_;
  bool has_ranks_;
  std::vector<GemmCall> calls_;
  std::vector<PerHeadGemmCall> per_head_calls_;
  std::vector<LayerTail> tails_;
};

}  // namespace quire::cuda
