#pragma once

#include <atomic>
#include <cstdint>

#include "attn/backend.h"
#include "cpu/attention/simd_arena.h"
#include "cpu/attention/simd_plan.h"

namespace quire::cpu {

// The state of one call, read by every thread.
struct CallContext {
  const AttentionShape& shape;
  const AttentionBatch& batch;
  const AttentionCall& call;
  const PhasePlan& plan;
  const WorkSplit& split;
  ArenaLayout layout;
  float* base;
  int num_threads;
  std::atomic<int>* pending;  // per split group, zero between calls
  std::atomic<int64_t> next_unit = 0;
};

// Computes one item of the plan for one KV head on the calling thread. The thread that finishes the
// last partition of a split item also merges the partials and writes the output.
void run_item(const CallContext& context, const WorkItem& item, int kv_head, int thread_idx);

}  // namespace quire::cpu
