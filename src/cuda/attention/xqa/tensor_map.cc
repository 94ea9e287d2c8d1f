#include "cuda/attention/xqa/tensor_map.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "cuda/base/error.h"

namespace quire::cuda::xqa {
namespace {

struct Driver {
  decltype(&cuTensorMapEncodeTiled) encode_tiled = nullptr;
};

// By way of the run time, so that the program does not link to the driver.
Result<Driver> find_driver() {
  constexpr unsigned kVersion = 12000;
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address,
                                                              kVersion, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    return unavailable("[xqa] the driver has no cuTensorMapEncodeTiled; expected one of CUDA 12");
  }
  return Driver{reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(address)};
}

}  // namespace

Result<CUtensorMap> encode(const PagedMap& map) {
  static const Result<Driver> driver = find_driver();
  if (!driver.ok()) return driver.status();
  constexpr uint64_t kElemBytes = 2;
  constexpr uint64_t kMaxPages = uint64_t{1} << 31;
  const bool is_half = map.dtype == DType::kF16;
  const uint64_t sizes[] = {map.head_dim, map.num_heads, map.page_size, kMaxPages};
  const uint64_t strides[] = {map.head_stride * kElemBytes, map.token_stride * kElemBytes,
                              map.page_stride * kElemBytes};
  const uint32_t box[] = {map.box_elems, 1, map.box_tokens, 1};
  const uint32_t steps[] = {1, 1, 1, 1};
  CUtensorMap encoded = {};
  const CUresult result = driver->encode_tiled(
      &encoded, is_half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4,
      const_cast<void*>(map.base), sizes, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return encoded;
  return internal_error(fmt::format("[xqa] a page's descriptor was refused; got CUDA error {}",
                                    static_cast<int>(result)));
}

}  // namespace quire::cuda::xqa
