// The operations of ops/ops.h on a GPU. Activations are BF16, F16 or F32; sums are F32. All
// operations can be captured in a graph, and keep errors in the stream. Within a process the same
// input gives the same bits on every call. A row's bits may depend on the number of rows (linear),
// and on the kernels that were measured as the fastest in this process (tune_linears). With FP8
// weights, steps of more than 8 rows, and experts from 2 rows on, may also round activations to
// FP8. With experts a row's bits may also depend on the experts of the other rows. With packed
// weights the bits of a row's product are the same for up to 8 rows (packed_way), except in a fused
// layer tail.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cuda/base/nccl.h"
#include "cuda/base/stream.h"
#include "cuda/ops/peer_sums.h"
#include "ops/ops.h"

namespace quire::cuda {

// The order of use is: load weights (make_linear, make_vector), end_loading(), allocate the
// activations, tune_linears(), then steps. Both calls below may be left out: then the upload keeps
// its threads and pinned memory, and fixed rules choose the kernels. A graph keeps the kernels that
// were chosen when it was captured, so tuning precedes capture.
class CudaOps : public Ops {
 public:
  // Waits for the uploads, and frees their threads and memory. More weights may be loaded later,
  // which allocates them again.
  virtual Status end_loading() = 0;
  // Between set_starting(true) and set_starting(false), collectives are enqueued only into graphs
  // that are captured: the first use of a kernel loads it, which waits for the device's work, and
  // with that for the other ranks, whose threads may wait for this one to load. Such a graph is
  // launched only when all ranks have loaded its kernels (wait_for_ranks). What steps of padding
  // compute does not matter.
  virtual void set_starting(bool is_starting) = 0;
  // Gives every rank the parts of all. parts: device memory, one part of equal size per rank, in
  // the order of the ranks; each rank has written its own.
  virtual void all_gather_parts(std::span<std::byte> parts, Stream& stream) = 0;
  // Calls `run_step`, which enqueues one step with the largest number of rows, and records its
  // products. Then measures every kernel that can compute them at these numbers of rows (ascending;
  // at most as many as the step had), and remembers the fastest. Cannot be captured; waits, and
  // overwrites the outputs of the recorded products, so their tensors must still exist. On an error
  // of the step nothing is measured.
  virtual Status tune_linears(std::span<const int> row_counts,
                              const std::function<Status()>& run_step) = 0;
  // Waits until every rank has called it.
  virtual Status wait_for_ranks() = 0;
  // The same, and returns the bytes of rank 0: times by which all ranks must choose alike.
  virtual Result<std::string> from_first_rank(std::string own) = 0;
};

struct CudaOpsOptions {
  bool overlap_kernels = true;  // programmatic dependent launch, if the device has it
  int layer_tail_blocks = 0;    // thread blocks of the fused layer tail; 0: one per SM
  int expert_blocks = 0;        // thread blocks of the experts' grouped products; 0: one per SM
  // The ranks that share a model, and which of them this is; null: there is one.
  std::shared_ptr<NcclRanks> ranks = nullptr;
  int rank = 0;
  std::shared_ptr<PeerSums> peer_sums = nullptr;  // of these ranks; null: all sums are NCCL's
};

// `stream` must outlive the Ops, and is the stream of every operation. activation: BF16, F16 or
// F32. Fails with kUnavailable without cuBLASLt.
Result<std::unique_ptr<CudaOps>> make_cuda_ops(CudaStream& stream, DType activation,
                                               CudaOpsOptions options = {});

}  // namespace quire::cuda
