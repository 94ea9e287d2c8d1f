#include "cuda/base/tensor_map.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "cuda/base/stream.h"

namespace quire::cuda {
namespace {

struct Driver {
  decltype(&cuTensorMapEncodeTiled) encode_tiled = nullptr;
};

// Looks the function up through the CUDA runtime, so that the program does not link to libcuda.
Result<Driver> find_driver() {
  constexpr unsigned kVersion = 12000;
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  QUIRE_CUDA_RETURN_IF_ERROR(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address,
                                                              kVersion, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    return unavailable(
        "[cuda] the driver has no cuTensorMapEncodeTiled; expected one for CUDA 12 or later");
  }
  return Driver{reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(address)};
}

}  // namespace

Result<CUtensorMap> encode_tensor_map(const TensorMapSpec& spec) {
  static const Result<Driver> driver = find_driver();
  if (!driver.ok()) return driver.status();
  constexpr size_t kMaxAxes = 5;
  constexpr uint64_t kElemBytes = 2;
  QUIRE_CHECK(
      spec.sizes.size() <= kMaxAxes && spec.strides.size() + 1 == spec.sizes.size() &&
          spec.box.size() == spec.sizes.size() && dtype_bytes(spec.dtype) == kElemBytes,
      "[cuda] a tensor map has more than 5 axes, unequal lists of axes, or elements that are "
      "not 16 bits wide");
  std::array<uint64_t, kMaxAxes> stride_bytes = {};
  std::transform(spec.strides.begin(), spec.strides.end(), stride_bytes.begin(),
                 [](uint64_t stride) { return stride * kElemBytes; });
  const uint32_t steps[kMaxAxes] = {1, 1, 1, 1, 1};
  CUtensorMap encoded = {};
  const CUresult result = driver->encode_tiled(
      &encoded,
      spec.dtype == DType::kF16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      static_cast<uint32_t>(spec.sizes.size()), const_cast<void*>(spec.base), spec.sizes.data(),
      stride_bytes.data(), spec.box.data(), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B,
      spec.is_read_in_full ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return encoded;
  return internal_error(
      fmt::format("[cuda] the driver rejected a tensor map; got CUDA error {}, expected 0",
                  static_cast<int>(result)));
}

}  // namespace quire::cuda
