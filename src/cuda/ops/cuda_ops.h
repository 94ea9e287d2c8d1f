// The operations of ops/ops.h on a GPU. Activations are BF16, F16 or F32; sums are F32. All of them
// can be captured in a graph, and note what fails in the stream. The same input gives the same bits
// on one process's every call; a row's bits may depend on how many rows there are (linear), and
// from one process to another on which kernel was the fastest (tune_linears).
#pragma once

#include <memory>
#include <span>

#include "cuda/base/stream.h"
#include "ops/ops.h"

namespace quire::cuda {

class CudaOps : public Ops {
 public:
  // Waits, and lets go of what loading weights took. More of them may be loaded, which takes it
  // again.
  virtual Status end_loading() = 0;
  // From here until tune_linears, linear() remembers its calls: run one step of the most rows.
  virtual void record_linears() = 0;
  // Measures every kernel that can compute the recorded products, at these numbers of rows
  // (ascending; at most as many as the calls had), and remembers the fastest. Outside of capture;
  // waits, and overwrites what the recorded calls wrote, so their tensors must still be there.
  virtual Status tune_linears(std::span<const int> row_counts) = 0;
};

struct CudaOpsOptions {
  bool overlap_kernels = true;  // programmatic dependent launch, where the device has it
  int layer_tail_blocks = 0;    // thread blocks of the fused layer tail; 0: one per SM
};

// `stream` outlives the Ops, and every operation is given it. activation: BF16, F16 or F32.
// kUnavailable without cuBLASLt.
Result<std::unique_ptr<CudaOps>> make_cuda_ops(CudaStream& stream, DType activation,
                                               CudaOpsOptions options = {});

}  // namespace quire::cuda
