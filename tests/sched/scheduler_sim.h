// Drives a Scheduler as the engine does, with a FakeDevice, and checks it after every operation.
// Used by the property tests and the fuzzer. Ends the program at the first error.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sched/fake_device.h"
#include "sched/scheduler.h"

namespace quire::testing {

// below(n) returns a number in [0, n), from a generator or from a fuzzer's input.
using Choices = std::function<uint32_t(uint32_t n)>;

struct SimRequest {
  std::vector<int32_t> prompt;
  int max_tokens = 16;
  int priority = 0;
  uint64_t seed = 0;
  std::string salt;
  bool prompt_logprobs = false;
  bool is_constrained = false;
  bool has_rules = false;
};

// The fake model's output for the request, computed without cache or batch.
std::vector<int32_t> output_alone(const SimRequest& request);

class SchedulerSim {
 public:
  // varies_drafts: each step may verify another number of drafts, as if a runner chose it.
  SchedulerSim(const SchedulerConfig& config, int max_steps_in_flight, bool varies_drafts);

  // Returns the sequence's id, or nullopt if it is refused.
  std::optional<SeqId> add(const SimRequest& request);
  // Plans a step if the pipeline has room. Returns false if there is nothing to run.
  bool schedule();
  // Completes the oldest step in flight, if any. With `fail`, its first token is an error.
  void complete(bool fail = false);
  void cancel(SeqId id);
  // Runs the engine's loop until nothing is left. Checks that it ends and that nothing leaks.
  void drain();

  Scheduler& scheduler() { return scheduler_; }
  const FakeDevice& device() const { return device_; }
  size_t num_live() const { return live_.size(); }
  SeqId live_id(size_t idx) const {
    return std::next(live_.begin(), static_cast<std::ptrdiff_t>(idx))->first;
  }
  int num_answered() const { return num_answered_; }
  // Steps that verify more or fewer drafts than the step before.
  int num_draft_changes() const { return num_draft_changes_; }

 private:
  struct Expected {
    SimRequest request;
    std::vector<int32_t> tokens;  // of prompt and output
  };

  // Does what the engine does for constrained sequences: some constraints cannot roll back, and
  // others forbid a pseudo-random draft.
  void constrain(BatchPlan& plan);
  // The upper bound of the next step's drafts.
  int choose_max_drafts() const;
  // num_drafts: of each decoding sequence.
  void check_plan(const BatchPlan& plan, int num_drafts);
  // Follows the prefix caches by their events alone, and compares.
  void check_kv_events();
  // The drafts that the span should have.
  int num_drafts_of(const SeqSpan& span, bool is_constrained) const;
  // Checks the rule tables that a device builds from the slots that each plan removes and adds.
  void check_rule_tables(const BatchPlan& plan);
  void check_no_overtaking(const BatchPlan& plan);
  // Checks strict priority: no sequence may wait for resources that preempting all lower ranks
  // would free while one of them runs.
  void check_priority_was_kept(const BatchPlan& plan);
  // Whether the rule table that the sequence may need is free or held by a lower rank.
  bool can_have_table(const Sequence& seq);
  const Sequence* first_waiting();
  int num_blocks_of_higher_ranks(const Sequence& seq, size_t table);
  // Whether the waiting sequence would fit if all lower ranks gave up their blocks.
  bool has_blocks_of_lower_ranks(const Sequence& seq, int num_higher);
  void take(const Sequence& seq);

  SchedulerConfig config_;
  Scheduler scheduler_;
  FakeDevice device_;
  size_t max_steps_in_flight_;
  bool varies_drafts_;
  int num_step_drafts_ = 0;  // of the last step
  int num_draft_changes_ = 0;
  std::deque<BatchPlan> in_flight_;
  std::vector<std::set<BlockHash>> caches_;  // by table, as the events tell
  std::map<SeqId, Expected> live_;
  std::map<SeqId, std::string> salts_;  // of all sequences ever added
  std::map<SeqId, int> num_reported_;   // drafts of the sequence's last result
  std::map<int, bool> device_slots_;    // whether the sequence in each slot has rules
  SeqId next_id_ = 1;
  uint64_t last_step_id_ = 0;
  int num_answered_ = 0;
};

struct ScenarioResult {
  SchedulerStats stats;
  int num_answered = 0;
  int64_t num_shared_tokens = 0;
  int64_t num_accepted_drafts = 0;
  int64_t num_rejected_drafts = 0;
  int64_t num_accepted_reported = 0;
  int64_t num_draft_changes = 0;
};

// Runs a random configuration with random requests that share prefixes and are cancelled at random.
// Compares every output with output_alone().
ScenarioResult run_scenario(const Choices& below, int num_ops);

}  // namespace quire::testing
