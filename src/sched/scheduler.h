// The scheduler decides what the next step computes. It runs on the host and uses no device type,
// clock or thread.
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kv/kv_events.h"
#include "quire/status.h"
#include "sched/batch_plan.h"
#include "sched/sequence.h"

namespace quire {

// One KV table has one block pool, and one block table per sequence. Layers with a sliding window
// use a different KV table from layers with full attention, so that their blocks can be freed
// earlier.
struct KvTableConfig {
  int num_blocks = 0;  // block 0 is the padding page and is never allocated
  int window = 0;      // a query reads the last `window` positions, itself included; 0: all
  // The table of recurrent states: an entry is the state after the tokens of its block. The window
  // is state_window(), and most blocks of a prompt have no entry (sched/kept_states.h).
  bool holds_states = false;
};

// While `first` to `last` sequences decode, a step verifies num_drafts drafts of each.
struct DraftRange {
  int first = 0;
  int last = 0;
  int num_drafts = 0;
};

struct SchedulerConfig {
  int max_num_seqs = 256;             // upper bound of the running sequences (slots)
  int max_num_rule_seqs = 256;        // upper bound of the sequences with rules (has_rules())
  int max_num_batched_tokens = 2048;  // tokens in one step
  int max_model_len = 4096;
  int block_size = 16;
  std::vector<KvTableConfig> tables;
  int num_drafts = 0;  // draft tokens that each step proposes, and the next one verifies
  std::vector<DraftRange> draft_ranges = {};  // outside of all ranges, num_drafts are verified
  // KV slots after a sequence's scheduled tokens that a drafter with keys and values of its own
  // writes; at most kMaxDraftKvSlots.
  int num_draft_kv_slots = 0;
  // 1 with a draft head: its keys of position p depend on the token of p + 1. Otherwise 0.
  int num_tokens_ahead = 0;
  bool enable_prefix_caching = true;
  // If false, a prompt is one span, unless a preempted sequence has outgrown a step. The prompt may
  // take the step's tokens from decodes that rank after it, which then skip the step.
  bool enable_chunked_prefill = true;
  int long_prefill_token_threshold = 0;  // tokens of one prompt in a step; 0: no limit
  // While a long prompt runs, its newest two states at multiples of this number are kept, so that a
  // preempted prompt loses little. A multiple of block_size.
  int tokens_between_states = 512;
  std::string block_hash_seed = std::string(kDefaultBlockHashSeed);
  bool collects_kv_events = false;
};

// The error names the field that is out of range. Scheduler() requires a valid configuration.
Status validate_scheduler_config(const SchedulerConfig& config);

struct SchedulerStats {
  int num_running = 0;
  int num_waiting = 0;
  int num_free_blocks = 0;  // of all tables; includes cached blocks that no sequence holds
  int num_total_blocks = 0;
  double kv_cache_usage = 0;  // BlockTables::usage()
  int64_t num_preemptions = 0;
  int64_t prefix_cache_queries = 0;  // tokens looked up
  int64_t prefix_cache_hits = 0;     // tokens found
  CacheMissCounts cache_misses = {};
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);
  ~Scheduler();

  // Fails (invalid_argument, with the numbers) when the sequence can never fit.
  Status add(std::unique_ptr<Sequence> seq);

  // Returns the number of running sequences that decode. The next step computes tokens for as many
  // of them as its token limit and the free blocks allow.
  int num_decoding() const;
  // Plans the next step from upper bounds: sequences whose last tokens are still in flight continue
  // with placeholders. The plan is empty when no sequence can run. The step verifies at most
  // max_drafts drafts of each decoding sequence, and at most what num_step_drafts() allows.
  BatchPlan schedule(int max_drafts = kMaxDrafts);

  // The tokens that a sequence took from a span. `seq` is null if finish() has ended the sequence.
  struct Progress {
    Sequence* seq = nullptr;
    int num_tokens = 0;
    int num_drafts = 0;  // drafts that the span verified; 0 if it failed
  };
  // Applies the results of a step. Steps complete in the order of their planning, and every plan
  // that is not empty must have run. `results` are in the order of the plan's spans; spans without
  // a result may be omitted. Appends each result's tokens to its sequence, up to max_total_tokens,
  // and frees the blocks that were reserved for rejected drafts. A result with an error appends no
  // tokens, and neither does a chunk that samples nothing. Returns one entry per result. The caller
  // must finish() a sequence that has an error or a hidden state before the next schedule(). A
  // sequence that has reached max_total_tokens is no longer scheduled, and keeps its blocks until
  // finish().
  std::vector<Progress> complete(const BatchPlan& plan, std::span<const SpanResult> results);

  // Ends a sequence at any time (a stop, a cancellation, an error). Its blocks are free at once,
  // because steps run in order: their next owner writes them after every step already planned.
  // Unknown or finished ids are ignored. The Sequence itself (kFinished) can be read until the next
  // schedule() or complete(). num_output_tokens: output tokens up to a stop; a later prompt repeats
  // at most these.
  void finish(SeqId id, int num_output_tokens = INT_MAX);

  // The changes of the prefix cache since the last call, in their order; empty unless the
  // configuration collects them. A block is reported as stored when the step that writes it is
  // planned.
  std::vector<KvEvent> take_kv_events();

  bool has_work() const;  // a sequence is waiting or running
  Sequence* find(SeqId id);
  SchedulerStats stats() const;
  const SchedulerConfig& config() const;

  // For tests: the hashes of the blocks that a table's prefix cache holds.
  std::vector<BlockHash> cached_hashes(size_t table) const;
  // For tests: ends the program when blocks leaked, are lost or are wrongly shared. Slow.
  void check_invariants() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace quire
