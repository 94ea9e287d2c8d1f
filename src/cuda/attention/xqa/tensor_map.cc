#include "cuda/attention/xqa/tensor_map.h"

#include "cuda/base/tensor_map.h"

namespace quire::cuda::xqa {

Result<CUtensorMap> encode(const PagedMap& map) {
  constexpr uint64_t kMaxPages = uint64_t{1} << 31;
  const uint64_t sizes[] = {map.head_dim, map.num_heads, map.page_size, kMaxPages};
  const uint64_t strides[] = {map.head_stride, map.token_stride, map.page_stride};
  const uint32_t box[] = {map.box_elems, 1, map.box_tokens, 1};
  return encode_tensor_map(
      {.base = map.base, .dtype = map.dtype, .sizes = sizes, .strides = strides, .box = box});
}

}  // namespace quire::cuda::xqa
