// The tensor map by which Hopper's TMA finds a page of the cache.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "quire/status.h"
#include "tensor/dtype.h"

namespace quire::cuda::xqa {

// A copy transfers box_elems elements of one head for each of box_tokens slots of a page.
struct PagedMap {
  const void* base = nullptr;
  DType dtype = DType::kBF16;  // a 16-bit type
  uint32_t head_dim = 0;
  uint32_t num_heads = 0;
  uint32_t page_size = 0;
  uint64_t page_stride = 0, head_stride = 0, token_stride = 0;  // in elements
  uint32_t box_elems = 0;
  uint32_t box_tokens = 0;
};

Result<CUtensorMap> encode(const PagedMap& map);

}  // namespace quire::cuda::xqa
