// All products between two layers' attention in one kernel, for a single token row. There is so
// little arithmetic per weight that memory bandwidth determines the time, provided that memory
// never idles.
#pragma once

#include <memory>
#include <optional>

#include "cuda/base/memory.h"
#include "cuda/ops/layer_tail_plan.h"
#include "cuda/ops/row_kernels.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

namespace quire::cuda {

// The LayerTail of ops.h with its matrices as tensors, [out_features, in_features], without biases.
// Activations are [1, width]; all have one type.
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

// Returns nullopt if a matrix has a bias.
std::optional<LayerTailCall> layer_tail_call(const LayerTail& tail);

class LayerTailKernel {
 public:
  // Returns null if the device has no bulk copies (before Hopper) or no cooperative launch.
  // num_blocks: thread blocks of the cooperative launch; 0: one per SM. The device refuses the
  // launch if it cannot run all of them at once.
  static Result<std::unique_ptr<LayerTailKernel>> create(const LaunchContext& context,
                                                         int num_blocks = 0);

  // Enqueues; capturable. Only one stream may use it at a time, because the grid barrier's counter
  // belongs to this object. Returns false, and enqueues nothing, unless the call has one row of F16
  // or BF16, widths that are multiples of 8 elements and fit in shared memory, and 16-byte aligned
  // addresses.
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
