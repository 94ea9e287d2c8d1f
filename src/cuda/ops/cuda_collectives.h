// The operations of ops/collectives.h on the ranks of several GPUs: by NCCL, or by kernels over
// peer memory where these were measured to be faster (peer_sums.h).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "cuda/base/nccl.h"
#include "cuda/ops/op_kernels.h"
#include "cuda/ops/peer_sums.h"
#include "ops/collectives.h"

namespace quire::cuda {

class CudaCollectives : public Collectives {
 public:
  // peer_sums: of these ranks; null: NCCL computes all sums.
  CudaCollectives(const LaunchContext& context, std::shared_ptr<NcclRanks> ranks, int rank,
                  std::shared_ptr<PeerSums> peer_sums)
      : context_(context),
        ranks_(std::move(ranks)),
        rank_(rank),
        peer_sums_(std::move(peer_sums)) {}

  // Whether calls enqueue their work now (see StartingCollectives).
  virtual bool are_enqueued() const { return true; }

  // See collectives.h.
  int num_ranks() const override { return ranks_->size(); }
  void all_reduce(TensorView x) override;
  void all_gather_columns(TensorView part, TensorView whole, TensorView scratch) override;
  // Gives every rank all ranks' parts. parts: device memory, one part of equal size per rank, in
  // rank order; each rank has written its own part.
  void all_gather_parts(std::span<std::byte> parts);
  // Ops::residual_norm() for norms with sums_ranks.
  void sum_and_norm(const ResidualNorm& norm, const TensorView& out);

 protected:
  CudaStream& stream() const { return *context_.stream; }

 private:
  SumMethod sum_method(const TensorView& x) const;

  LaunchContext context_;
  std::shared_ptr<NcclRanks> ranks_;
  int rank_;
  std::shared_ptr<PeerSums> peer_sums_;  // null: NCCL computes all sums
};

// The collectives of a rank that starts. They are enqueued only into graphs. Outside of a graph, a
// kernel's first use loads it and waits for the device's work. This work may wait for other ranks,
// and their threads may wait for this rank to load. A graph is launched only when all ranks have
// loaded its kernels (Agreement::wait). Results of padding steps are not used.
class StartingCollectives final : public CudaCollectives {
 public:
  explicit StartingCollectives(const CudaCollectives& usual) : CudaCollectives(usual) {}

  bool are_enqueued() const override { return stream().is_capturing(); }
};

}  // namespace quire::cuda
