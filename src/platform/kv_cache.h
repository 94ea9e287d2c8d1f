#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_layout.h"
#include "model/model.h"
#include "quire/status.h"

namespace quire {

// The memory of one block table's blocks.
struct KvTableBytes {
  int64_t block_bytes = 0;  // over all layers of all groups that share the table
  int window = 0;           // how far back those groups read; 0: to the beginning
};
std::vector<KvTableBytes> kv_table_bytes(std::span<const KvGroup> groups);

// The memory behind every block id: each layer of each group has its own run of pages, and a block
// of a table is the page of that number in all layers that share the table.
class KvCache {
 public:
  // num_blocks: by block table.
  static Result<KvCache> allocate(std::span<const KvGroup> groups, std::span<const int> num_blocks,
                                  Ops& ops);

  // One view a layer of the group, in the order of KvGroup::layers.
  std::span<const KvCacheView> caches(size_t group_idx) const { return views_[group_idx]; }
  // The group's block table.
  size_t table(size_t group_idx) const { return tables_[group_idx]; }

 private:
  std::vector<Tensor> memory_;
  std::vector<std::vector<KvCacheView>> views_;
  std::vector<size_t> tables_;
};

}  // namespace quire
