// One instance of XQA's kernel. Sources that CMake generates include this file after macros that
// select the instance. The external headers that XQA includes come first, so that XQA itself can be
// in a namespace per instance: its names are the same in all instances.
#pragma once

// Without NDEBUG XQA builds another kernel, for its own debugging.
#ifndef NDEBUG
#define NDEBUG
#endif

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "cuda/attention/xqa/kernel.h"
#include "cuda/attention/xqa/tensor_map.h"
#include "cuda/base/launch.h"

#define BEAM_WIDTH 1
#define SPEC_DEC 0
#define USE_INPUT_KV 0
#define LOW_PREC_OUTPUT 0
#define USE_CUSTOM_BARRIER 1
// The kernel with a window serves every shape: without a window, the window is longer than any
// context.
#define SLIDING_WINDOW 1

// XQA has one scale for keys and values, and multiplies it into both products. Quire has two, and
// its softmax scale is not always 1/sqrt(head_dim). XQA uses rsqrtf only for that factor of q·k:
// qScalePtr[0] * kvScalePtr[0] * rsqrtf(head_dim) over an FP8 cache, and qScale * rsqrtf(head_dim)
// over others. Redefining it makes the first k_scale * scale and the second scale.
#if CACHE_ELEM_ENUM == 2
#define rsqrtf(num_elems) (qScale / kvCacheScaleValue)
#else
#define rsqrtf(num_elems) 1.0F
#endif
// XQA's static initializers query its kernel when the program starts. Here these queries do
// nothing; prepare() makes them when a plan is created.
namespace quire::cuda::xqa {
inline cudaError_t not_yet(uint32_t* size = nullptr) {
  if (size != nullptr) *size = 0;
  return cudaSuccess;
}
}  // namespace quire::cuda::xqa
#define cudaMemcpyFromSymbol(to, ...) quire::cuda::xqa::not_yet(to)
#define cudaFuncSetAttribute(...) quire::cuda::xqa::not_yet()

// The additions of hopper_kernel.cu to XQA's source: see patch_kernels.cmake.
#define QUIRE_ZERO_UNUSED_VALUES()                                                       \
  if (idxVTile + 1 == nbTiles && cacheSeqLen % tileSize != 0) {                          \
    for (uint32_t part = 0; part < cacheHeadNbParts; part++) {                           \
      constexpr uint32_t kRowGrains = exactDiv(cacheHeadPartBytes, grainBytes);          \
      LdGrain* const unused_rows = &smem.vBuf(idxVBuf)[part](cacheSeqLen % tileSize, 0); \
      const uint32_t num_grains = (tileSize - cacheSeqLen % tileSize) * kRowGrains;      \
      for (uint32_t i = threadIdx.x; i < num_grains; i += gemm1NbThrds) {                \
        unused_rows[i] = LdGrain{};                                                      \
      }                                                                                  \
    }                                                                                    \
    asm volatile("fence.proxy.async.shared::cta;\n");                                    \
    smem.gemm1WarpGrpBar.arrive_and_wait();                                              \
  }
#define QUIRE_ANSWER_PADDING()                                                                \
  if (cacheSeqLen == 0) {                                                                     \
    acqBulk();                                                                                \
    constexpr uint32_t kGrains = headGrpSize * exactDiv(sizeof(OutputHead), grainBytes);      \
    auto* const rows =                                                                        \
        reinterpret_cast<LdGrain*>(&output[headGrpSize * (nbKHeads * idxReq + idxHeadGrp)]);  \
    const uint32_t thread = threadIdx.z * blockDim.x + threadIdx.x;                           \
    for (uint32_t i = thread; blockIdx.y == 0 && i < kGrains; i += blockDim.x * blockDim.z) { \
      rows[i] = LdGrain{};                                                                    \
    }                                                                                         \
    return;                                                                                   \
  }

// XQA refers to this type by its global name.
enum class ArrivalToken : uint64_t {};

#pragma nv_diag_suppress 177, 550
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused"
namespace QUIRE_XQA_NAME {
// XQA has functions of these names for vectors or floats, and also calls CUDA's.
using ::__bfloat1622float2;
using ::__float22half2_rn;
using ::__float2bfloat162_rn;
using ::__float2half2_rn;
using ::__hadd2_rn;
using ::__half22float2;
using ::atomicMax;
using ::exp2f;
using ::expf;
using ::fmaxf;
using ::max;
__device__ inline float __frcp_rn(float x) {
  return ::__frcp_rn(x);
}
#if CACHE_ELEM_ENUM == 0
#include "hopper_kernel.cu"
#else
#include "other_kernel.cu"
#endif
}  // namespace QUIRE_XQA_NAME
#pragma GCC diagnostic pop

#undef rsqrtf
#undef cudaMemcpyFromSymbol
#undef cudaFuncSetAttribute

namespace quire::cuda::xqa::QUIRE_XQA_NAME {

namespace xqa = ::QUIRE_XQA_NAME;

// The size is read from the device, because sizeof on the host gives another value.
Result<size_t> prepare() {
  uint32_t bytes = 0;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaMemcpyFromSymbol(&bytes, xqa::smemSize, sizeof(bytes)));
  return size_t{bytes};
}

xqa::KVCacheList<true> cache_of(const KernelCall& call) {
  return {static_cast<xqa::GMemCacheHead*>(call.k), static_cast<xqa::GMemCacheHead*>(call.v),
          call.block_table, reinterpret_cast<const uint32_t*>(call.seq_lens), call.max_pages};
}

#if CACHE_ELEM_ENUM == 0

static_assert(xqa::gemm0CtaTileNbTokens == kHopperTileTokens);

Result<CUtensorMap> map_of(const KernelCall& call, const void* base) {
  return encode({.base = base,
                 .dtype = INPUT_FP16 ? DType::kF16 : DType::kBF16,
                 .head_dim = HEAD_ELEMS,
                 .num_heads = call.num_kv_heads,
                 .page_size = TOKENS_PER_PAGE,
                 .page_stride = uint64_t{call.page_stride} * HEAD_ELEMS,
                 .head_stride = uint64_t{call.head_stride} * HEAD_ELEMS,
                 .token_stride = uint64_t{call.token_stride} * HEAD_ELEMS,
                 .box_elems = xqa::cacheHeadPartElems,
                 .box_tokens = std::min<uint32_t>(TOKENS_PER_PAGE, kHopperTileTokens)});
}

void launch(const KernelCall& call, CudaStream& stream) {
  const Result<CUtensorMap> k = map_of(call, call.k);
  const Result<CUtensorMap> v = map_of(call, call.v);
  if (!k.ok()) return stream.record_error(k.status());
  if (!v.ok()) return stream.record_error(v.status());
  // Before its wait for the previous kernel it reads lengths, pages, and all tiles of keys and
  // values but the last. Those are complete before the layer's first kernel starts, because the
  // metadata kernel lets no kernel start early. It waits before it reads queries and the last tile,
  // and so before it writes any result.
  const LaunchShape shape{.grid = {1, call.num_splits, call.num_kv_heads * call.num_reqs},
                          .block = {xqa::gmmaWarpGrpSize, 1, 3},
                          .shared_bytes = call.shared_bytes,
                          .overlap_start = call.overlap_start};
  QUIRE_LAUNCH(stream, xqa::kernel_mha, shape, call.num_kv_heads, call.window, call.scale,
               call.k_scale, static_cast<xqa::OutputHead*>(call.out),
               static_cast<const xqa::IOHead*>(call.q), call.sinks, cache_of(call), call.num_reqs,
               1.0F, call.v_scale, *k, *v, call.counters, call.scratch);
}

#else

static_assert(xqa::ctaTile.x == kTileTokens);

void launch(const KernelCall& call, CudaStream& stream) {
  const dim3 block{xqa::warp_size * xqa::ctaShapeInWarps.x, xqa::ctaShapeInWarps.y,
                   xqa::ctaShapeInWarps.z};
  // The kernel waits for the previous one before its first read.
  const LaunchShape shape{.grid = {call.num_splits, call.num_kv_heads, call.num_reqs},
                          .block = block,
                          .shared_bytes = call.shared_bytes,
                          .overlap_start = true};
  QUIRE_LAUNCH(stream, xqa::kernel_mha, shape, call.num_kv_heads, call.window, call.scale,
               call.k_scale, static_cast<xqa::OutputHead*>(call.out),
               static_cast<const xqa::IOHead*>(call.q), call.sinks, cache_of(call), call.num_reqs,
               1.0F, call.v_scale, call.page_stride, call.token_stride, call.head_stride,
               call.counters, call.scratch);
}

#endif

}  // namespace quire::cuda::xqa::QUIRE_XQA_NAME
