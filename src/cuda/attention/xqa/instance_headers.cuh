// The headers and names that the instances of XQA's kernel in a source file share. XQA's names are
// the same in all instances, so XQA is included in one namespace per instance. Therefore the
// external headers that it includes must come first.
#pragma once

// Without NDEBUG, XQA builds a debug variant of the kernel.
#ifndef NDEBUG
#define NDEBUG
#endif

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

#include "cuda/attention/xqa/kernel.h"

#define BEAM_WIDTH 1
#define USE_INPUT_KV 0
#define LOW_PREC_OUTPUT 0
#define USE_CUSTOM_BARRIER 1
// The kernel with a window serves every shape: if a shape has no window, the window is set longer
// than any context.
#define SLIDING_WINDOW 1

// XQA refers to this type by its global name.
enum class ArrivalToken : uint64_t {};

namespace quire::cuda::xqa {

template <typename T>
struct Identity {
  using type = T;
};

template <typename... Params>
void launch_kernel(const KernelCall& call, CudaStream& stream, void (*kernel)(Params...), dim3 grid,
                   dim3 block, typename Identity<Params>::type... args) {
  void* pointers[] = {const_cast<void*>(static_cast<const void*>(&args))...};
  enqueue(stream, call, reinterpret_cast<const void*>(kernel), grid, block, pointers);
}

}  // namespace quire::cuda::xqa
