#pragma once

#include <span>
#include <vector>

#include "kv/kv_layout.h"
#include "model/model.h"
#include "quire/status.h"

namespace quire {

// Bytes that one block takes over all layers of all groups.
int64_t kv_block_bytes(std::span<const KvGroup> groups);

// The memory behind every block id: each layer of each group has its own run of pages, and a
// block is the page of that number in all of them.
class KvCache {
 public:
  static Result<KvCache> allocate(std::span<const KvGroup> groups, int num_blocks, Ops& ops);

  // One view a layer of the group, in the order of KvGroup::layers.
  std::span<const KvCacheView> caches(size_t group_idx) const { return views_[group_idx]; }

 private:
  std::vector<Tensor> memory_;
  std::vector<std::vector<KvCacheView>> views_;
};

}  // namespace quire
