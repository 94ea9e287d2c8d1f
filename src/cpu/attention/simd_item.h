#pragma once

#include <atomic>
#include <cstdint>

#include "attn/backend.h"
#include "cpu/attention/simd_arena.h"
#include "cpu/attention/simd_plan.h"

namespace quire::cpu {

// What one call needs at hand on every thread.
struct CallContext {
  const AttentionCall& call;
  const PhasePlan& plan;
  const WorkSplit& split;
  ArenaLayout layout;
  float* base;
  int num_threads;
  std::atomic<int>* pending;  // of each split group, zero between calls
  std::atomic<int64_t> next_unit = 0;
};

// One item of the plan for one KV head, start to end, on the calling thread. Of a split item, the
// thread that finishes last also merges and writes.
void run_item(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx);

}  // namespace quire::cpu
