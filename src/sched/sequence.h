// The scheduler's state of a sequence.
#pragma once

#include <climits>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kv/block_pool.h"
#include "quire/request.h"
#include "sched/batch_plan.h"

namespace quire {

enum class SeqState {
  kWaiting,   // no slot, no blocks
  kRunning,   // has a slot and blocks
  kFinished,  // no further step will be planned
};

// A sequence's blocks in one of the model's block tables. Block i holds the tokens [i * block_size,
// (i + 1) * block_size); all tables are equally long.
struct SeqBlocks {
  std::vector<int32_t> ids;  // 0 before `first`
  int first = 0;             // blocks before it are outside the table's window and are freed
  int num_registered = 0;    // leading blocks offered to the prefix cache
  int num_sent = 0;          // leading entries sent to the device
};

// One sample of a request: its tokens, and how many of them are cached. The scheduler owns it; only
// the engine thread uses it.
struct Sequence {
  SeqId id = 0;
  int priority = 0;
  uint64_t arrival = 0;  // serial number that breaks ties of priority
  std::string cache_salt;
  std::shared_ptr<const SamplingSpec> sampling;
  // The host computes each mask from the token before it, so the sequence has at most one step in
  // flight.
  bool is_constrained = false;
  // Under a constraint: the drafts that the device has proposed for its next step.
  std::vector<int32_t> next_drafts;

  TokenIds token_ids;  // prompt, then the output that the host has received
  int num_prompt_tokens = 0;
  int num_history_tokens = 0;  // Request::num_history_tokens
  // Hashes of the prompt's first full blocks, computed as needed. The n sequences of a request
  // share them, so each hash is computed once. Null: the hashes are not shared.
  std::shared_ptr<std::vector<BlockHash>> prompt_hashes;
  int max_total_tokens = 0;  // prompt + max_tokens, capped by max_model_len

  SeqState state = SeqState::kWaiting;
  int slot = -1;
  // Tokens whose keys and values are in the cache, or will be after the steps in flight. An upper
  // bound while steps with drafts are in flight.
  int num_scheduled = 0;
  int num_prefill = 0;        // tokens known at its start, computed before it decodes
  int num_in_flight = 0;      // steps in flight that sample for it, each at least one token
  int num_cached_tokens = 0;  // prompt tokens found in the prefix cache at its first start
  CacheMiss cache_miss = CacheMiss::kNone;  // why no more of them were found
  std::vector<SeqBlocks> tables;            // one per SchedulerConfig::tables; empty while waiting
  int num_preemptions = 0;

  // True once all tokens known at its start are scheduled: the device then has the next input
  // tokens.
  bool decodes() const { return state == SeqState::kRunning && num_scheduled >= num_prefill; }
  // Lower bound of the tokens cached before its next step: a step in flight adds at least one.
  int min_computed() const {
    return decodes() ? static_cast<int>(token_ids.size()) + num_in_flight - 1 : num_scheduled;
  }
  int num_output_tokens() const { return static_cast<int>(token_ids.size()) - num_prompt_tokens; }
};

// A cached state that a running prompt keeps in case it is preempted (tokens_between_states).
struct IntervalState {
  int block = 0;         // of the sequence
  int32_t block_id = 0;  // in the table of states
};

// A sequence and the scheduler's private state for it.
struct SeqRecord {
  std::unique_ptr<Sequence> seq;
  bool has_rules = false;  // it holds one of the device's rule tables while it runs

  std::vector<BlockHash> block_hashes;  // of its first full blocks, computed as needed

  // Only with a table of recurrent states (sched/kept_states.h).
  int num_adopted_blocks = 0;  // found in the prefix cache when it started
  // The last block whose keys and values were cached then, although its state was not: other
  // prompts begin with it, too. -1: none.
  int branch_block = -1;
  std::vector<IntervalState> interval_states;
  // Set when it finishes: the prompt's tokens and the output tokens that the request has received.
  // Drafts may have continued the sequence beyond a stop.
  int num_delivered_tokens = INT_MAX;

  // State of the step being planned.
  int step_tokens = 0;
  bool step_samples = false;
  bool step_committed = false;
  bool added_in_step = false;
};

}  // namespace quire
