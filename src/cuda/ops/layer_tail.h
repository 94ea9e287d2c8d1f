// All products between two layers' attention as one kernel, at one row: so few multiplications for
// each weight that the time is what memory takes, if it never has to wait.
#pragma once

#include <memory>
#include <optional>

#include "cuda/base/memory.h"
#include "cuda/ops/layer_tail_plan.h"
#include "cuda/ops/row_kernels.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// ops.h's LayerTail with its matrices in place, [out_features, in_features], without biases. Rows
// are [1, width]; all of one type.
struct LayerTailCall {
  TensorView o;
  TensorView gate_up;
  TensorView down;
  TensorView next_qkv;  // data null: no layer follows, and delta is not added to residual
  const float* post_norm = nullptr;
  const float* next_norm = nullptr;
  float eps = 0;
  TensorView attention;
  TensorView residual;
  TensorView delta;
  TensorView product;
  TensorView qkv;
};

// None where a matrix has a bias.
std::optional<LayerTailCall> layer_tail_call(const LayerTail& tail);

class LayerTailKernel {
 public:
  // Null where the device has no bulk copies (before Hopper). num_blocks: thread blocks of the
  // cooperative launch; 0: one per SM. The device refuses more than it can run at once.
  static Result<std::unique_ptr<LayerTailKernel>> create(const LaunchContext& context,
                                                         int num_blocks = 0);

  // Enqueues; capturable. On one stream at a time: the kernel's blocks meet at a counter of ours.
  // False, and nothing enqueued, unless it is one row of F16 or BF16, with widths that are
  // multiples of 8 elements and fit in shared memory, and 16-byte aligned addresses.
  [[nodiscard]] bool run(const LayerTailCall& call);

 private:
  LayerTailKernel(const LaunchContext& context, Buffer arrivals, int num_blocks,
                  const TailSharedMemory& shared_memory)
      : context_(context),
        arrivals_(std::move(arrivals)),
        num_blocks_(num_blocks),
        shared_memory_(shared_memory) {}

  LaunchContext context_;
  Buffer arrivals_;
  int num_blocks_;
  TailSharedMemory shared_memory_;
};

}  // namespace quire::cuda
