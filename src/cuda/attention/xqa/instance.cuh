// One instance of XQA's kernel. CMake generates source files that define macros to select an
// instance and then include this file, once per instance. This file undefines the macros at its
// end.
#include "cuda/attention/xqa/instance_headers.cuh"

// The kernel for several query tokens packs their heads into one tile of at most 32 rows.
#if MAX_Q_LEN > 1
#define SPEC_DEC 1
#define SPEC_Q_SEQ_LEN MAX_Q_LEN
#else
#define SPEC_DEC 0
#endif

#pragma nv_diag_suppress 177, 550
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused"
namespace QUIRE_XQA_NAME {
// XQA defines functions with these names for vectors or floats, and also calls CUDA's.
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
#include "mha_sm90.cu"
#else
#include "mha.cu"
#endif
}  // namespace QUIRE_XQA_NAME
#pragma GCC diagnostic pop

namespace quire::cuda::xqa::QUIRE_XQA_NAME {

namespace xqa = ::QUIRE_XQA_NAME;

xqa::KVCacheList<true> cache_of(const KernelCall& call) {
  return {static_cast<xqa::GMemCacheHead*>(call.k), static_cast<xqa::GMemCacheHead*>(call.v),
          call.block_table, reinterpret_cast<const uint32_t*>(call.seq_lens), call.max_pages};
}

#if CACHE_ELEM_ENUM == 0

constexpr uint32_t kBoxElems = xqa::cacheHeadPartElems;
static_assert(xqa::gemm0CtaTileNbTokens == kHopperTileTokens);
static_assert(xqa::ctaNbValidQHeads == HEAD_GRP_SIZE * MAX_Q_LEN);

// Before it waits for the previous kernel, this kernel reads lengths, pages, and all tiles of keys
// and values that have no tokens of this step. These are complete before the layer's first kernel
// starts, because the metadata kernel lets no kernel start early. It waits before it reads queries
// and the other tiles, and so before it writes any result.
void launch(const KernelCall& call, CudaStream& stream) {
  launch_kernel(
      call, stream, xqa::kernel_mha, {1, call.num_splits, call.num_kv_heads * call.num_reqs},
      {xqa::gmmaWarpGrpSize, 1, 3}, call.num_kv_heads, call.window, call.scale, call.k_scale,
      static_cast<xqa::OutputHead*>(call.out), static_cast<const xqa::IOHead*>(call.q), call.sinks,
      cache_of(call), call.num_reqs, 1.0F, call.v_scale, *call.k_map, *call.v_map,
#if MAX_Q_LEN > 1
      // The starts of the requests' tokens are null, because all requests have q_len. The mask is
      // null, because this kernel is causal.
      xqa::SpecDecParams{call.q_len, nullptr, nullptr},
#endif
      call.counters, call.scratch);
}

#else

constexpr uint32_t kBoxElems = 0;
static_assert(xqa::ctaTile.x == kTileTokens);

// The kernel waits for the previous one before its first read.
void launch(const KernelCall& call, CudaStream& stream) {
  launch_kernel(
      call, stream, xqa::kernel_mha, {call.num_splits, call.num_kv_heads, call.num_reqs},
      {xqa::warp_size * xqa::ctaShapeInWarps.x, xqa::ctaShapeInWarps.y, xqa::ctaShapeInWarps.z},
      call.num_kv_heads, call.window, call.scale, call.k_scale,
      static_cast<xqa::OutputHead*>(call.out), static_cast<const xqa::IOHead*>(call.q), call.sinks,
      cache_of(call), call.num_reqs, 1.0F, call.v_scale, call.page_stride, call.token_stride,
      call.head_stride, call.counters, call.scratch);
}

#endif

extern const Instance instance;
const Instance instance = {&xqa::smemSize, kBoxElems, MAX_Q_LEN, launch};

}  // namespace quire::cuda::xqa::QUIRE_XQA_NAME

#include "forget_guards.h"
#undef QUIRE_XQA_NAME
#undef INPUT_FP16
#undef CACHE_ELEM_ENUM
#undef HEAD_ELEMS
#undef HEAD_GRP_SIZE
#undef MAX_Q_LEN
#undef SPEC_DEC
#undef SPEC_Q_SEQ_LEN
#undef TOKENS_PER_PAGE
