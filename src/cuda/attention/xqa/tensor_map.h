// How Hopper's copy engine finds a page of the cache: a descriptor that the driver encodes.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::xqa {

// A copy takes one head's box_elems of each of box_tokens slots of a page.
struct PagedMap {
  const void* base = nullptr;
  DType dtype = DType::kBF16;  // of 16 bits
  uint32_t head_dim = 0;
  uint32_t num_heads = 0;
  uint32_t page_size = 0;
  uint64_t page_stride = 0, head_stride = 0, token_stride = 0;  // in elements
  uint32_t box_elems = 0;
  uint32_t box_tokens = 0;
};

Result<CUtensorMap> encode(const PagedMap& map);

}  // namespace quire::cuda::xqa
