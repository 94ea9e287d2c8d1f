// Decides what the next step does. Host only; no device type, no clock, no thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quire/status.h"
#include "sched/batch_plan.h"
#include "sched/sequence.h"

namespace quire {

// One block table per sequence, over a pool of its own. Layers with a sliding window have another
// table than those that see everything, so that their blocks can be freed earlier.
struct KvTableConfig {
  int num_blocks = 0;  // block 0 is the padding page and never handed out
  int window = 0;      // a query reads the last `window` positions, its own included; 0: all
};

struct SchedulerConfig {
  int max_num_seqs = 256;             // rows
  int max_num_rule_seqs = 256;        // of them, those with sampling rules: has_rules in policy.h
  int max_num_batched_tokens = 2048;  // tokens in one step
  int max_model_len = 4096;
  int block_size = 16;
  std::vector<KvTableConfig> tables;
  int num_drafts = 0;  // draft tokens that each step proposes and the next one verifies
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
};

// Names the flag that is out of range. The constructor takes only what passes.
Status validate_scheduler_config(const SchedulerConfig& config);

struct SchedulerStats {
  int num_running = 0;
  int num_waiting = 0;
  int num_free_blocks = 0;  // of all tables; cached blocks that no sequence holds count as free
  int num_total_blocks = 0;
  double kv_cache_usage = 0;  // of the fullest table: what admission runs out of first
  int64_t num_preemptions = 0;
  int64_t prefix_cache_queries = 0;  // tokens looked up
  int64_t prefix_cache_hits = 0;     // tokens found
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();

  // Refused (invalid_argument) when the sequence can never fit: with the numbers.
  Status add(std::unique_ptr<Sequence> seq);

  // Plans the next step from upper bounds: sequences whose last tokens are still in flight continue
  // with placeholders. Empty when nothing can run.
  BatchPlan schedule();

  // A sequence and how many of a span's tokens it took; null: it has finished meanwhile.
  struct Progress {
    Sequence* seq = nullptr;
    int num_tokens = 0;
  };
  // Takes what a step sampled, in the order in which steps were planned; every plan that is not
  // empty must have been run. `spans` are in the order of the plan's slices; those with nothing to
  // say may be left out. Appends each span's tokens to its sequence, up to max_total_tokens, unless
  // it has an error or comes from a chunk that samples nothing, and gives the blocks back that were
  // reserved for drafts which were not accepted. Returns one entry for each of `spans`. Before the
  // next schedule() the caller must finish() a sequence that has an error. One that has reached
  // max_total_tokens is not scheduled any more, and keeps its blocks until finish().
  std::vector<Progress> complete(const BatchPlan& plan, std::span<const SampledSpan> spans);

  // Ends a sequence at any moment (a stop, a cancel, an error): its blocks are free at once,
  // because steps run in order: whoever gets them next writes after every step already planned.
  // Unknown or finished ids are ignored. The Sequence itself (kFinished) can be read until the next
  // schedule() or complete().
  void finish(SeqId id);

  bool has_work() const;  // a sequence waits or runs
  Sequence* find(SeqId id);
  SchedulerStats stats() const;
  const SchedulerConfig& config() const;

  // For tests: ends the program when blocks leaked, are lost or wrongly shared. Slow.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
