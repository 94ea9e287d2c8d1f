// Tensor maps: descriptors by which Hopper's TMA finds a tile of a tensor. The driver encodes them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda {

// Axes are listed from the innermost, which is contiguous. A copy transfers one box; elements
// outside the tensor arrive as zeros. In shared memory the rows of a box have the 128-byte swizzle,
// so box.front() elements must have 128 bytes.
struct TensorMapSpec {
  const void* base = nullptr;  // 16-byte aligned
  DType dtype = DType::kBF16;  // a 16-bit type
  std::span<const uint64_t> sizes;
  std::span<const uint64_t> strides;  // of all axes except the innermost, in elements; multiples of
                                      // 8
  std::span<const uint32_t> box;      // at most 256 per axis
  bool is_read_in_full = false;       // neighbouring boxes are copied too, so the L2 may fetch 256
                                      // bytes
};

Result<CUtensorMap> encode_tensor_map(const TensorMapSpec& spec);

}  // namespace quire::cuda
