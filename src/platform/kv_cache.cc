#include "platform/kv_cache.h"

#include "base/numbers.h"

namespace quire {

std::vector<KvTableBytes> kv_table_bytes(std::span<const KvGroup> groups) {
  const std::vector<int> windows = table_windows(groups);
  std::vector<Saturated> bytes(windows.size(), 0);
  for (const KvGroup& group : groups) {
    const auto num_layers = static_cast<int64_t>(group.layers.size());
    Saturated& of_table = bytes[static_cast<size_t>(group.table)];
    of_table = of_table + num_layers * Saturated(group.layout.page_bytes());
  }
  std::vector<KvTableBytes> tables;
  for (size_t t = 0; t < windows.size(); ++t) tables.push_back({bytes[t].get(), windows[t]});
  return tables;
}

Result<KvCache> KvCache::allocate(std::span<const KvGroup> groups, std::span<const int> num_blocks,
                                  Ops& ops) {
  KvCache cache;
  for (const KvGroup& group : groups) {
    const KvLayout& layout = group.layout;
    std::vector<KvCacheView> views;
    for (size_t i = 0; i < group.layers.size(); ++i) {
      QUIRE_ASSIGN_OR_RETURN(
          Tensor memory,
          ops.allocate(Shape{num_blocks[static_cast<size_t>(group.table)], layout.page_stride()},
                       layout.dtype));
      views.push_back(kv_cache_view(layout, memory.view.data));
      cache.memory_.push_back(std::move(memory));
    }
    cache.views_.push_back(std::move(views));
    cache.tables_.push_back(static_cast<size_t>(group.table));
  }
  return cache;
}

}  // namespace quire
