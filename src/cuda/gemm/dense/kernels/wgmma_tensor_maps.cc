#include "cuda/gemm/dense/kernels/wgmma_tensor_maps.h"

#include <cstdint>
#include <span>

#include "cuda/base/tensor_map.h"
#include "cuda/gemm/dense/kernels/wgmma_kernel.h"

namespace quire::cuda::wgmma {

TensorView as_pairs(TensorView view) {
  if (view.dtype != DType::kF8E4M3) return view;
  const Shape& shape = view.shape;
  view.dtype = DType::kBF16;
  view.shape =
      shape.rank() == 2 ? Shape{shape[0], shape[1] / 2} : Shape{shape[0], shape[1], shape[2] / 2};
  return view;
}

Result<CUtensorMap> weights_map(const TensorView& w, bool is_gated, int box_rows) {
  const bool has_experts = w.shape.rank() == 3;
  const int rows_axis = has_experts ? 1 : 0;
  const auto num_experts = has_experts ? static_cast<uint64_t>(w.shape[0]) : uint64_t{1};
  const auto num_rows = static_cast<uint64_t>(w.shape[rows_axis]);
  const auto width = static_cast<uint64_t>(w.shape[rows_axis + 1]);
  const auto tile_rows = static_cast<uint32_t>(box_rows);
  // The lists end with the axis of experts.
  const auto encode = [&](std::span<const uint64_t> sizes, std::span<const uint64_t> strides,
                          std::span<const uint32_t> box) {
    const size_t num_axes = sizes.size() - (has_experts ? 0 : 1);
    return encode_tensor_map({.base = w.data,
                              .dtype = w.dtype,
                              .sizes = sizes.first(num_axes),
                              .strides = strides.first(num_axes - 1),
                              .box = box.first(num_axes),
                              .is_read_in_full = true});
  };
  if (!is_gated) {
    const uint64_t sizes[] = {width, num_rows, num_experts};
    const uint64_t strides[] = {width, num_rows * width};
    const uint32_t box[] = {kBlockK, tile_rows, 1};
    return encode(sizes, strides, box);
  }
  const uint64_t half = num_rows / 2;
  const uint64_t sizes[] = {width, kSwizzleRows, 2, half / kSwizzleRows, num_experts};
  const uint64_t strides[] = {width, half * width, kSwizzleRows * width, num_rows * width};
  const uint32_t box[] = {kBlockK, kSwizzleRows, 2, tile_rows / (2 * kSwizzleRows), 1};
  return encode(sizes, strides, box);
}

Result<CUtensorMap> rows_map(const TensorView& x, int box_rows) {
  const auto width = static_cast<uint64_t>(x.shape[1]);
  const uint64_t sizes[] = {width, static_cast<uint64_t>(x.shape[0])};
  const uint64_t strides[] = {width};
  const uint32_t box[] = {kBlockK, static_cast<uint32_t>(box_rows)};
  return encode_tensor_map(
      {.base = x.data, .dtype = x.dtype, .sizes = sizes, .strides = strides, .box = box});
}

}  // namespace quire::cuda::wgmma
