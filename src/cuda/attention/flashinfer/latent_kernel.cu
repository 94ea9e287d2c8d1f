// Calls FlashInfer's MLA kernel for a LatentCall. The parameters are defined here, with the member
// names that the kernel expects. In FlashInfer these members are arrays of work item fields. Here
// they are computed from a LatentWork and from the lengths on the device (LatentView), so that the
// plan may use upper bounds.
#define FLASHINFER_CUTLASS_UTILS_CUH_
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cutlass/arch/barrier.h>
#include <cutlass/cutlass.h>

#include <mla_hopper.cuh>
#include <type_traits>

#include "cuda/attention/flashinfer/latent_kernel.h"
#include "cuda/base/launch.h"

namespace quire::cuda::flashinfer_backend {
namespace {

// The memory from which the parameters' members are computed.
struct LatentInputs {
  const LatentWork* works = nullptr;
  const int32_t* query_start = nullptr;
  const int32_t* seq_lens = nullptr;
  int32_t max_pages = 0;
};

enum class WorkField { kFirstToken, kFirstPage, kQLen, kKvLen, kRow, kKvStart, kKvEnd, kPartial };

// Acts as an array of one field of all work items.
template <WorkField kField>
struct WorkArray {
  LatentInputs inputs;

  __device__ __forceinline__ int32_t operator[](int32_t idx) const {
    const LatentWork& work = inputs.works[idx];
    if constexpr (kField == WorkField::kFirstToken) {
      return inputs.query_start[work.req];
    } else if constexpr (kField == WorkField::kFirstPage) {
      return work.req * inputs.max_pages;
    } else if constexpr (kField == WorkField::kQLen) {
      return view(work).q_len;
    } else if constexpr (kField == WorkField::kKvLen) {
      return view(work).kv_len;
    } else if constexpr (kField == WorkField::kRow) {
      return work.row;
    } else if constexpr (kField == WorkField::kKvStart) {
      return work.kv_start;
    } else if constexpr (kField == WorkField::kKvEnd) {
      return view(work).kv_end;
    } else {
      return work.partial;
    }
  }

 private:
  __device__ __forceinline__ LatentView view(const LatentWork& work) const {
    return view_of(work, inputs.seq_lens[work.req]);
  }
};

// The scale of the cache, as a member that converts to float on the device. The kernel rounds the
// scale to BF16, multiplies the cache's values by it and rounds the products. This is exact for
// powers of two; otherwise each rounding adds an error of up to 2^-9.
struct CacheScale {
  const float* scale = nullptr;

  __host__ __device__ __forceinline__ operator float() const {
    return scale != nullptr ? *scale : 1.0F;
  }
};

// The scale of the products. It cancels the error of rounding the cache's scale.
struct ScoreScale {
  float scale = 1.0F;
  CacheScale cache;

  __host__ __device__ __forceinline__ operator float() const {
    if (cache.scale == nullptr) return scale;
    return scale * (cache / __bfloat162float(__float2bfloat16_rn(cache)));
  }
};

// The kernel expects FlashInfer's member names.
template <typename Q, typename Kv>
struct LatentParams {
  using DTypeQ = Q;
  using DTypeKV = Kv;
  using DTypeO = Q;
  using IdType = int32_t;

  Q* q_nope = nullptr;
  Q* q_pe = nullptr;
  Kv* ckv = nullptr;
  Kv* kpe = nullptr;
  Q* partial_o = nullptr;
  float* partial_lse = nullptr;
  Q* final_o = nullptr;
  float* final_lse = nullptr;

  WorkArray<WorkField::kFirstToken> q_indptr;
  WorkArray<WorkField::kFirstPage> kv_indptr;
  WorkArray<WorkField::kPartial> partial_indptr;
  WorkArray<WorkField::kQLen> q_len;
  WorkArray<WorkField::kKvLen> kv_len;
  WorkArray<WorkField::kRow> q_start;
  WorkArray<WorkField::kKvStart> kv_start;
  WorkArray<WorkField::kKvEnd> kv_end;
  int32_t* merge_packed_offset_start = nullptr;
  int32_t* merge_packed_offset_end = nullptr;
  int32_t* merge_partial_packed_offset_start = nullptr;
  int32_t* merge_partial_packed_offset_end = nullptr;
  int32_t* merge_partial_stride = nullptr;
  int32_t* kv_indices = nullptr;
  int32_t* work_indptr = nullptr;

  flashinfer::uint_fastdiv block_size;
  flashinfer::uint_fastdiv num_heads;

  uint32_t q_nope_stride_n = 0, q_nope_stride_h = 0;
  uint32_t q_pe_stride_n = 0, q_pe_stride_h = 0;
  uint32_t ckv_stride_page = 0, ckv_stride_n = 0;
  uint32_t kpe_stride_page = 0, kpe_stride_n = 0;
  uint32_t o_stride_n = 0, o_stride_h = 0;

  ScoreScale sm_scale;
  CacheScale ckv_scale;
  CacheScale kpe_scale;
  const float* ckv_scale_arr = nullptr;
  bool return_lse_base_on_e = false;
};

template <typename Q, typename Kv>
LatentParams<Q, Kv> make_params(const LatentCall& call) {
  constexpr uint32_t kWidth = kLatentDim + kLatentRopeDim;
  const LatentArrays& arrays = call.arrays;
  const LatentInputs inputs = {arrays.works, call.query_start, call.seq_lens, call.max_pages};
  const auto num_heads = static_cast<uint32_t>(call.num_heads);
  LatentParams<Q, Kv> params;
  params.q_nope = static_cast<Q*>(const_cast<void*>(call.q));
  params.q_pe = params.q_nope + kLatentDim;
  params.ckv = static_cast<Kv*>(const_cast<void*>(call.cache));
  params.kpe = params.ckv + kLatentDim;
  params.partial_o = static_cast<Q*>(call.partial_out);
  params.partial_lse = call.partial_lse;
  params.final_o = static_cast<Q*>(call.out);
  params.q_indptr = {inputs};
  params.kv_indptr = {inputs};
  params.partial_indptr = {inputs};
  params.q_len = {inputs};
  params.kv_len = {inputs};
  params.q_start = {inputs};
  params.kv_start = {inputs};
  params.kv_end = {inputs};
  params.merge_packed_offset_start = arrays.merge_row;
  params.merge_packed_offset_end = arrays.merge_row_end;
  params.merge_partial_packed_offset_start = arrays.merge_partial;
  params.merge_partial_packed_offset_end = arrays.merge_partial_end;
  params.merge_partial_stride = arrays.merge_stride;
  params.kv_indices = const_cast<int32_t*>(call.block_table);
  params.work_indptr = arrays.worker_start;
  params.block_size = flashinfer::uint_fastdiv(static_cast<uint32_t>(call.page_size));
  params.num_heads = flashinfer::uint_fastdiv(num_heads);
  params.q_nope_stride_n = params.q_pe_stride_n = num_heads * kWidth;
  params.q_nope_stride_h = params.q_pe_stride_h = kWidth;
  params.ckv_stride_page = params.kpe_stride_page = call.page_stride;
  params.ckv_stride_n = params.kpe_stride_n = call.token_stride;
  params.o_stride_n = num_heads * kLatentDim;
  params.o_stride_h = kLatentDim;
  params.ckv_scale = params.kpe_scale = {call.cache_scale};
  params.sm_scale = {call.scale, params.ckv_scale};
  return params;
}

template <typename Q, typename Kv>
void launch(const LatentCall& call, CudaStream& stream) {
  namespace hopper = flashinfer::mla::hopper;
  using Params = LatentParams<Q, Kv>;
  using Traits =
      hopper::HopperKernelTraits</*CAUSAL=*/true, /*NUM_STAGES=*/2, kLatentDim, kLatentRopeDim,
                                 kLatentBlockRows, kLatentTilePositions, Q, Kv, Q, int32_t>;
  static_assert(sizeof(typename Traits::SharedStorage) <= size_t{227} << 10);
  // A grid barrier separates the computation of partial results from their merge, so all thread
  // blocks must be resident.
  const LaunchShape shape = {.grid = dim3(static_cast<unsigned>(call.grid.tile_blocks),
                                          static_cast<unsigned>(call.grid.num_workers)),
                             .block = Traits::NUM_THREADS,
                             .shared_bytes = sizeof(typename Traits::SharedStorage),
                             .cooperative = true};
  QUIRE_LAUNCH(stream, (hopper::BatchMLAPageAttentionHopperKernel<Traits, Params>), shape,
               (make_params<Q, Kv>(call)));
}

}  // namespace

bool has_latent_kernel(DType q, DType cache) {
  return (q == DType::kBF16 && (cache == q || cache == DType::kF8E4M3)) ||
         (q == DType::kF16 && cache == q);
}

void launch_latent(const LatentCall& call, DType q, DType cache, CudaStream& stream) {
  if (call.grid.kernel == LatentKernel::kDecode) {
    return launch_latent_decode(call, q, cache, stream);
  }
  if (q == DType::kF16) return launch<__half, __half>(call, stream);
  if (cache == q) return launch<__nv_bfloat16, __nv_bfloat16>(call, stream);
  launch<__nv_bfloat16, __nv_fp8_e4m3>(call, stream);
}

}  // namespace quire::cuda::flashinfer_backend
