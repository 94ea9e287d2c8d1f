// A KV table of the scheduler: its pool of blocks, and its prefix cache.
#pragma once

#include "kv/block_pool.h"
#include "sched/scheduler.h"

namespace quire {

struct KvTable {
  explicit KvTable(const KvTableConfig& cfg)
      : config(cfg), pool(cfg.num_blocks), cache(cfg.num_blocks) {}

  KvTableConfig config;
  BlockPool pool;
  PrefixCache cache;
};

}  // namespace quire
