// How Hopper's copy engine finds a tile of a tensor: a descriptor that the driver encodes.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda {

// Axes from the innermost, which is contiguous. A copy takes a box; elements outside the tensor
// arrive as zeros. In shared memory a box's rows lie in the 128-byte swizzle, so that box.front()
// is 128 bytes of elements.
struct TensorMapSpec {
  const void* base = nullptr;  // 16-byte aligned
  DType dtype = DType::kBF16;  // of 16 bits
  std::span<const uint64_t> sizes;
  std::span<const uint64_t> strides;  // of all axes but the innermost, in elements: multiples of 8
  std::span<const uint32_t> box;      // at most 256 per axis
  bool is_read_in_full = false;  // neighbouring boxes follow: the L2 may fetch 256 bytes at once
};

Result<CUtensorMap> encode_tensor_map(const TensorMapSpec& spec);

}  // namespace quire::cuda
