// The router of a layer with experts as one kernel.
#pragma once

#include <cstdint>

#include "cuda/ops/op_kernels.h"
#include "ops/layer_tail_ops.h"

namespace quire::cuda {

// The upper bound of tokens. With more, the few thread blocks have too much to do: 4 to 8 tokens
// take up to 5 us longer than with separate kernels on an H200, and one token of 256 experts 3.6 us
// (bench/results/h200/gemm.md).
inline constexpr int64_t kMostRouterTokens = 2;

// RouterCall::router on the device; data null: packed.
struct RouterMatrix {
  TensorView w;     // [num_experts, hidden_size]
  TensorView bias;  // [num_experts], in the type of the activations; data null: none
};

// Whether the kernel computes the router: on Hopper, with F16 or BF16 activations and weights of
// their type, up to 128 experts, widths of up to 4096 that are multiples of 8, and addresses that
// are aligned to 16 bytes. All of these are equal on all ranks, because ranks that chose experts by
// different kernels could choose different ones.
bool router_kernel_takes(const LaunchContext& context, const RouterCall& call,
                         const RouterMatrix& matrix);
// Enqueues; capturable. The norm is not a sum over ranks.
void run_router_kernel(const LaunchContext& context, const RouterCall& call,
                       const RouterMatrix& matrix);

}  // namespace quire::cuda
