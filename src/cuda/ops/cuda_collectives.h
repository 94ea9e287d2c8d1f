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
  // peer_sums: of these ranks; null: all sums are NCCL's.
  CudaCollectives(const LaunchContext& context, std::shared_ptr<NcclRanks> ranks, int rank,
                  std::shared_ptr<PeerSums> peer_sums)
      : context_(context),
        ranks_(std::move(ranks)),
        rank_(rank),
        peer_sums_(std::move(peer_sums)) {}

  // Whether a call is enqueued now.
  virtual bool are_enqueued() const { return true; }

  // See collectives.h.
  int num_ranks() const override { return ranks_->size(); }
  void all_reduce(TensorView x) override;
  void all_gather_columns(TensorView part, TensorView whole, TensorView scratch) override;
  // Gives every rank the parts of all. parts: device memory, one part of equal size per rank, in
  // the order of the ranks; each rank has written its own.
  void all_gather_parts(std::span<std::byte> parts);
  // An Ops::residual_norm with sums_ranks.
  void sum_and_norm(const ResidualNorm& norm, const TensorView& out);

 protected:
  CudaStream& stream() const { return *context_.stream; }

 private:
  SumWay sum_way(const TensorView& x) const;

  LaunchContext context_;
  std::shared_ptr<NcclRanks> ranks_;
  int rank_;
  std::shared_ptr<PeerSums> peer_sums_;  // null: all sums are NCCL's
};

// The collectives of a rank that starts. They are enqueued only into graphs that are captured: the
// first use of a kernel loads it, which waits for the device's work, and with that for the other
// ranks, whose threads may wait for this one to load. Such a graph is launched only when all ranks
// have loaded its kernels (Agreement::wait). What steps of padding compute does not matter.
class StartingCollectives final : public CudaCollectives {
 public:
  explicit StartingCollectives(const CudaCollectives& usual) : CudaCollectives(usual) {}

  bool are_enqueued() const override { return stream().is_capturing(); }
};

}  // namespace quire::cuda
