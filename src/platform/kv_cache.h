#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/kv_layout.h"
#include "model/model.h"
#include "quire/status.h"

namespace quire {

// Bytes per block of one block table.
struct KvTableBytes {
  int64_t block_bytes = 0;  // over all layers of all groups that share the table
  int window = 0;           // tokens that those groups look back; 0: all
};
std::vector<KvTableBytes> kv_table_bytes(std::span<const KvGroup> groups);

// The memory behind every block id. Each layer of each group has its own array of pages, and block
// i of a table is page i in all layers that share the table.
class KvCache {
 public:
  // num_blocks: by block table.
  static Result<KvCache> allocate(std::span<const KvGroup> groups, std::span<const int> num_blocks,
                                  Ops& ops);

  // One view per layer of the group, in the order of KvGroup::layers.
  std::span<const KvCacheView> caches(size_t group_idx) const { return views_[group_idx]; }
  // Index of the group's block table.
  size_t table(size_t group_idx) const { return tables_[group_idx]; }

 private:
  std::vector<Tensor> memory_;
  std::vector<std::vector<KvCacheView>> views_;
  std::vector<size_t> tables_;
};

}  // namespace quire
