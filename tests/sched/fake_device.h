// A fake device that models only the cache. It runs plans as a real device would, from the plan
// alone, and ends the program if a plan is wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sched/batch_plan.h"
#include "sched/scheduler.h"

namespace quire::testing {

// Stands for the keys and values of a token. It depends on all tokens up to this one and on the
// salt.
using Content = uint64_t;
Content root_content(std::string_view salt);
Content next_content(Content previous, int32_t token_id);
// The fake model: returns the token that follows a prefix.
int32_t fake_sample(Content prefix, uint64_t seed);

class FakeDevice {
 public:
  explicit FakeDevice(const SchedulerConfig& config);

  // `salt_of` gives a sequence's salt, which a real device does not have but the checks need. A
  // pseudo-random number of each span's drafts is right, and of those that a span reports for its
  // sequence's next step.
  std::vector<SpanResult> run(const BatchPlan& plan,
                              const std::function<std::string(SeqId)>& salt_of);

  int64_t num_computed_tokens() const { return num_computed_tokens_; }
  int64_t num_shared_tokens() const { return num_shared_tokens_; }
  int64_t num_accepted_drafts() const { return num_accepted_drafts_; }
  int64_t num_rejected_drafts() const { return num_rejected_drafts_; }
  // Accepted drafts that a result had reported.
  int64_t num_accepted_reported() const { return num_accepted_reported_; }

 private:
  struct Slot {
    bool active = false;
    bool fresh = false;  // has had no span yet
    SeqId seq_id = 0;
    uint64_t seed = 0;
    std::vector<int32_t> token_ids;
    std::vector<Content> contents;                // expected content of the cache for each token
    std::vector<std::vector<int32_t>> block_ids;  // by table
    int num_blocks = 0;                           // blocks per table that its latest span may use
    int num_computed = 0;
    int num_old = 0;                     // computed before this plan
    int step_begin = 0;                  // computed before its latest span
    int num_accepted = 0;                // accepted drafts of its latest span
    std::vector<Content> state;          // of its next span: by position modulo num_state_rows()
    std::vector<int32_t> reported = {};  // drafts of its next span, of which num_right are right
    int num_right = 0;
  };

  void remove_slot(int slot);
  void add_slot(const SlotAdded& added, Content root);
  void append_blocks(const BlockTableAppend& append);
  void count_old_holders();
  void write(const BatchPlan& plan, const SeqSpan& span);
  void write_chunk(const BatchPlan& plan, const SeqSpan& span, Slot& slot);
  void write_next_tokens(const BatchPlan& plan, const SeqSpan& span, Slot& slot);
  void write_kv(Slot& slot, int position, Content content);
  // Reads the state with which a span begins, as a layer does for the whole batch before it writes
  // any state.
  void read_state(const SeqSpan& span);
  size_t num_state_rows() const { return 1 + static_cast<size_t>(num_drafts_); }
  void check_reads(const SeqSpan& span) const;
  // The drafter's part of a step, if it has a cache of its own.
  void draft(const BatchPlan& plan);
  Content draft_content(const Slot& slot, int position) const;
  bool is_old(const Slot& slot, size_t table, int block_idx) const;
  SpanResult sample(const SeqSpan& span);
  // Proposes drafts that the result reports.
  void propose(Slot& slot) const;
  static void append_sampled(Slot& slot);
  size_t kv_slot(const Slot& slot, size_t table, int position) const;

  struct Table {
    int window;
    std::vector<Content> cache;        // [num_blocks * block_size]
    std::vector<int> num_old_holders;  // per block: slots that could read it before this plan
    // In a table of states, by block: the contents of the newest tokens. Empty: another table.
    std::vector<std::vector<Content>> states;

    bool holds_states() const { return !states.empty(); }
  };

  int block_size_;
  int num_drafts_;
  int num_draft_kv_slots_;
  int num_tokens_ahead_;
  std::vector<Slot> slots_;
  std::vector<Table> tables_;
  size_t draft_table_ = 0;            // the table that the drafter uses, which has no window
  std::vector<Content> draft_cache_;  // as Table::cache
  int64_t num_computed_tokens_ = 0;
  int64_t num_shared_tokens_ = 0;
  int64_t num_accepted_drafts_ = 0;
  int64_t num_rejected_drafts_ = 0;
  int64_t num_accepted_reported_ = 0;
};

}  // namespace quire::testing
