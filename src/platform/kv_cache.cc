#include "platform/kv_cache.h"

#include "base/saturated.h"

namespace quire {

int64_t kv_block_bytes(std::span<const KvGroup> groups) {
  Saturated bytes = 0;
  for (const KvGroup& group : groups) {
    const auto num_layers = static_cast<int64_t>(group.layers.size());
    bytes = bytes + num_layers * Saturated(group.layout.page_bytes());
  }
  return bytes.get();
}

Result<KvCache> KvCache::allocate(std::span<const KvGroup> groups, int num_blocks, Ops& ops) {
  KvCache cache;
  for (const KvGroup& group : groups) {
    const KvLayout& layout = group.layout;
    std::vector<KvCacheView> views;
    for (size_t i = 0; i < group.layers.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(Tensor memory,
                             ops.allocate(Shape{num_blocks, layout.page_stride()}, layout.dtype));
      views.push_back(kv_cache_view(layout, memory.view.data));
      cache.memory_.push_back(std::move(memory));
    }
    cache.views_.push_back(std::move(views));
  }
  return cache;
}

}  // namespace quire
