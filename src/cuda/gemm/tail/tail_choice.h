// Chooses by measurement which layers run their tail as one fused kernel (layer_tail.h), and runs
// it.
#pragma once

#include <memory>
#include <set>
#include <span>

#include "cuda/base/graph.h"
#include "cuda/base/nccl.h"
#include "cuda/gemm/tail/layer_tail.h"
#include "cuda/ops/peer_sums.h"
#include "ops/layer_tail_ops.h"

namespace quire::cuda {

struct LayerTailOptions {
  int num_blocks = 0;  // thread blocks of the fused kernel; 0: one per SM
  // The ranks that share a model, and which of them this is; null: there is one.
  std::shared_ptr<NcclRanks> ranks = nullptr;
  int rank = 0;
  std::shared_ptr<PeerSums> peer_sums = nullptr;  // of these ranks; null: all sums are NCCL's
};

class LayerTailChoice {
 public:
  // With several ranks, all ranks make the same choice.
  static Result<LayerTailChoice> create(const LaunchContext& context,
                                        const LayerTailOptions& options);

  // Enqueues the fused kernel if it was chosen for the layer and takes it. Otherwise returns false.
  bool try_run(const LayerTail& layer);
  // Chooses the faster way for the layers of one model at one row: the fused kernel or separate
  // kernels. It warms the device up and compares medians over alternating rounds, so that a change
  // of the device's clocks does not decide. Both ways run as graphs, because during the start
  // collectives are enqueued only into these. Before each tail, a kernel that only spins stands for
  // attention. `ops` enqueues the separate kernels.
  Status tune(std::span<const LayerTail> recorded, Ops& ops);

 private:
  LayerTailChoice(const LaunchContext& context, std::unique_ptr<LayerTailKernel> kernel,
                  const LayerTailOptions& options)
      : context_(context),
        kernel_(std::move(kernel)),
        ranks_(options.ranks),
        rank_(options.rank),
        peer_sums_(options.peer_sums) {}

  // Whether the kernel takes the tail and, with several ranks, its sums.
  bool takes(const LayerTail& layer) const;
  void run(const LayerTail& layer);
  // Returns false if the device refuses the launch. It may refuse when other processes share its
  // SMs, because the kernel needs all SMs at once. Ranks do not wait for each other here.
  Result<bool> try_launch(const LayerTail& layer);
  // Ranks that chose differently would wait for each other forever.
  Result<bool> all_agree(bool agrees) const;
  // The median times of the fused kernel and of separate ones.
  struct Times {
    double fused_us = 0;
    double separate_us = 0;
  };
  Result<Times> measure(std::span<const LayerTail> layers, Ops& ops);
  // Launches both in turns until the device is as fast as in a long run. All ranks are in this
  // process, because takes() needs peer memory, so all_agree() ends the loop on all of them at
  // once.
  Status warm_up(const CudaGraph& fused, const CudaGraph& separate);

  LaunchContext context_;
  std::unique_ptr<LayerTailKernel> kernel_;  // null: the device does not support it
  std::shared_ptr<NcclRanks> ranks_;         // null: a single rank
  int rank_;
  std::shared_ptr<PeerSums> peer_sums_;  // null: all sums are NCCL's
  std::set<const Linear*> chosen_;       // the o of layers that run the fused kernel
};

}  // namespace quire::cuda
