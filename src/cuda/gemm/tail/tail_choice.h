// Chooses which layers run their tail as one fused kernel (layer_tail.h), and runs it.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>

#include "cuda/base/graph.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/ops/peer_sums.h"
#include "measure/agreement.h"
#include "measure/choices.h"
#include "ops/layer_tail_ops.h"

namespace quire::cuda {

struct LayerTailOptions {
  int num_blocks = 0;        // thread blocks of the fused kernel; 0: one per SM
  Agreement agreement = {};  // of the ranks that share a model
  int num_ranks = 1;
  int rank = 0;
  std::shared_ptr<PeerSums> peer_sums = nullptr;       // null: NCCL computes all sums
  std::shared_ptr<MeasuredChoices> choices = nullptr;  // null: measures, and keeps nothing
};

class LayerTailChoice {
 public:
  // With several ranks, all ranks make the same choice.
  static Result<LayerTailChoice> create(const LaunchContext& context,
                                        const LayerTailOptions& options);

  // Enqueues the fused kernel and returns true if it was chosen for the layer and supports it.
  bool try_run(const LayerTail& layer);
  // Chooses the faster way for the layers of one model at one row, the fused kernel or separate
  // kernels: the kept choice, otherwise by measurement. Both ways run as graphs, because during the
  // start only graphs may contain collectives. Before each tail, a kernel that only spins stands
  // for attention. `ops` enqueues the separate kernels.
  Status tune(std::span<const LayerTail> recorded, Ops& ops);

 private:
  LayerTailChoice(const LaunchContext& context, std::unique_ptr<LayerTailKernel> kernel,
                  LayerTailOptions options)
      : context_(context), kernel_(std::move(kernel)), options_(std::move(options)) {}

  // Whether the kernel takes the tail and, with several ranks, its sums.
  bool takes(const LayerTail& layer) const;
  void run(const LayerTail& layer);
  // Returns false if the device refuses the launch. It may refuse when other processes share its
  // SMs, because the kernel needs all SMs at once. Ranks do not wait for each other here.
  Result<bool> try_launch(const LayerTail& layer);
  // Whether the fused kernel was faster, on all ranks.
  Result<bool> measure(std::span<const LayerTail> layers, Ops& ops);
  // Launches both graphs in turn until the device is as fast as in a long run. All ranks are in
  // this process, because takes() needs peer memory, so they all leave the loop at once.
  Status warm_up(const CudaGraph& fused, const CudaGraph& separate);

  LaunchContext context_;
  std::unique_ptr<LayerTailKernel> kernel_;  // null: the device does not support it
  LayerTailOptions options_;
  std::set<const Linear*> chosen_;  // the o of layers that run the fused kernel
};

}  // namespace quire::cuda
