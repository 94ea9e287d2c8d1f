// The operations of ops/ops.h on a GPU. Activations are BF16, F16 or F32; sums are F32. All
// operations can be captured in a graph, and keep errors in the stream. Within a process the same
// input gives the same bits on every call. A row's bits may depend on the number of rows (linear),
// and on the kernels that were measured as the fastest in this process (tune_linears).
#pragma once

#include <memory>
#include <span>

#include "cuda/base/stream.h"
#include "ops/ops.h"

namespace quire::cuda {

class CudaOps : public Ops {
 public:
  // Waits for the uploads, and frees their threads and memory. More weights may be loaded later,
  // which allocates them again.
  virtual Status end_loading() = 0;
  // From this call until tune_linears, linear() records its calls: run one step with the largest
  // number of rows.
  virtual void record_linears() = 0;
  // Measures every kernel that can compute the recorded products at these numbers of rows
  // (ascending; at most as many as the calls had), and remembers the fastest. Cannot be captured;
  // waits, and overwrites the outputs of the recorded calls, so their tensors must still exist.
  virtual Status tune_linears(std::span<const int> row_counts) = 0;
};

struct CudaOpsOptions {
  bool overlap_kernels = true;  // programmatic dependent launch, if the device has it
  int layer_tail_blocks = 0;    // thread blocks of the fused layer tail; 0: one per SM
};

// `stream` must outlive the Ops, and is the stream of every operation. activation: BF16, F16 or
// F32. Fails with kUnavailable without cuBLASLt.
Result<std::unique_ptr<CudaOps>> make_cuda_ops(CudaStream& stream, DType activation,
                                               CudaOpsOptions options = {});

}  // namespace quire::cuda
