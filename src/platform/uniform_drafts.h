// Chooses how many drafts the steps of a GPU verify and propose. All decoding sequences of a step
// verify the same number, because a CUDA graph has a fixed query length, and the host chooses it
// while earlier steps run.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "platform/adaptive_drafts.h"
#include "quire/status.h"
#include "sched/batch_plan.h"

namespace quire {

// The times of decode steps and of the proposals after them, measured at start. They may lack time
// that does not depend on the number of drafts, such as the time of copies. Then drafts seem to
// cost a larger fraction of a step than they do. cuda/step/draft_costs.h lists the missing times.
struct DraftCosts {
  std::vector<int> batch_sizes;  // sequences of the measured steps, ascending
  std::vector<int> num_drafts;   // drafts that a step may verify per sequence: ascending from 0
  // Seconds, [batch_sizes, num_drafts].
  std::vector<double> verify_seconds;   // of a step that verifies this many drafts
  std::vector<double> propose_seconds;  // of a drafter that proposes this many

  // Seconds of a step with num_drafts[choice] drafts and of the same number of proposals after it,
  // interpolated between the measured numbers of sequences.
  double step_seconds(int num_seqs, size_t choice) const;
};

// The costs as bytes, for the other ranks, which must choose by the same times.
std::string draft_costs_to_bytes(const DraftCosts& costs);
// kInternal unless these are costs of the same steps as `own`.
Result<DraftCosts> draft_costs_from_bytes(std::string_view bytes, const DraftCosts& own);

// The drafts that one sequence's span verified and accepted.
struct SpanDrafts {
  int num_drafts = 0;
  int num_accepted = 0;
};

// The choices of one runner (through StepDrafts). They depend only on the costs and on the calls so
// far, so all ranks with the same costs choose alike.
//
// The drafts of step s + 1 are proposed after step s, so their number is chosen twice. When step s
// is enqueued, plan_proposals() chooses how many drafts the drafter proposes (none in a saturated
// batch). When step s + 1 is planned, num_verified() keeps all of these or fewer, because the batch
// may have grown. That choice uses the results up to step s - 1, because those of step s arrive
// later.
//
// When the batch shrinks, the costs show at once that more drafts are worth it. A higher acceptance
// shows only in verified drafts. Therefore a probe verifies more drafts than are worth it: every
// kProbePeriod steps, or less often if probes would take more than kProbeShare of the time.
class UniformDrafts {
 public:
  explicit UniformDrafts(DraftCosts costs);

  // Returns the number of drafts, at most `most`, that yields the most tokens per second while
  // num_seqs sequences decode.
  int choose(int num_seqs, int most) const;
  // Returns the number of drafts that the next step verifies per decoding sequence: at most `most`,
  // and at most the number that was proposed for it. May be called repeatedly for one step.
  int num_verified(int num_decoding, int most) const;
  // Returns the number of drafts, at most `most`, that the drafter proposes after the step that is
  // being enqueued, for each of the num_seqs sequences that sample in it. Call it once per step in
  // which a sequence samples.
  int plan_proposals(int num_seqs, int most);
  // Records the decoding spans of a step. A span that could not have drafts counts with the step's
  // number of drafts, because the step spent as much time on it.
  void observe(std::span<const SpanDrafts> spans);

  static constexpr int kProbePeriod = 32;
  static constexpr double kProbeShare = 0.0025;

 private:
  // Index of the largest measured number of drafts that is at most `most`.
  size_t last_choice(int most) const;
  size_t best_choice(int num_seqs, int most) const;
  // Tokens that a sequence is expected to get from one step.
  double num_tokens(size_t choice) const;
  // Tokens per second of one sequence.
  double tokens_per_second(int num_seqs, size_t choice) const;
  // The largest choice above `best` whose loss as a probe is within kProbeShare; otherwise `best`.
  size_t probe_choice(int num_seqs, size_t best, int most) const;

  DraftCosts costs_;
  AcceptanceRates rates_;
  int num_proposed_ = 0;   // drafts for the next step
  bool is_probe_ = false;  // the next step verifies all of them
  int steps_since_probe_ = 0;
  double seconds_since_probe_ = 0;  // by the costs
};

// The drafts of one runner's steps, on the thread that enqueues and waits: how many each step
// verifies and proposes, and which slots have them.
class StepDrafts {
 public:
  // Each step verifies and proposes the most drafts that the plan allows, until adapt() is called.
  explicit StepDrafts(int num_slots) : num_proposed_(static_cast<size_t>(num_slots)) {}

  void adapt(DraftCosts costs) { chooser_.emplace(std::move(costs)); }

  // See Runner::drafts_worth().
  int num_verified(int num_decoding, int max_drafts) const;
  // Returns the plan, whose step is enqueued next. If a sequence has fewer proposals than planned
  // drafts, for example because max_drafts has risen, returns a copy with fewer drafts: the span
  // keeps its length, and tokens that no drafter wrote are not verified.
  std::shared_ptr<const BatchPlan> without_missing(std::shared_ptr<const BatchPlan> plan) const;
  // Returns the number of drafts that the drafter proposes after the plan's step for each slot that
  // samples in it. Call it once per step in which a slot samples.
  int plan_proposals(const BatchPlan& plan);
  // Records the results of a step.
  void observe(const BatchPlan& plan, std::span<const SpanResult> results);

 private:
  std::optional<UniformDrafts> chooser_;
  std::vector<int> num_proposed_;  // by slot, for the slot's next step
};

}  // namespace quire
