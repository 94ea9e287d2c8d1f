// Chooses how many drafts the steps of a CPU propose and verify, to maximize the tokens per second.
// The inputs are the times of earlier steps, and how often drafts were accepted. The choice for a
// GPU (platform/uniform_drafts.h) shares AcceptanceRates.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sched/batch_plan.h"

namespace quire {

// Estimates the time of a step by its number of token rows, from the steps that have run.
class StepTimes {
 public:
  void observe(int num_rows, double seconds);
  // Whether a step with about as many rows was observed.
  bool has_observed(int num_rows) const;
  // Returns seconds. Underestimates sizes that were not observed, so that they are tried. Beyond
  // the largest observation, extends the line through the last two, or the only one as a constant.
  double at(double num_rows) const;

 private:
  // Steps of about the same number of rows.
  struct Bucket {
    size_t idx = 0;
    int count = 0;
    double num_rows = 0;  // mean
    double seconds = 0;   // moving average
  };

  // Seconds on the line through `a` and `b`.
  static double on_line(const Bucket& a, const Bucket& b, double num_rows);

  std::vector<Bucket> buckets_;  // observed buckets, by ascending idx
};

// A span whose drafts a step has verified.
struct VerifiedSpan {
  std::span<const float> confidences;  // of its drafts, in [0, 1]
  int num_accepted = 0;
};

// The probability that a draft is accepted, by its index in the span and its drafter's confidence.
class AcceptanceRates {
 public:
  explicit AcceptanceRates(int num_drafts) : positions_(static_cast<size_t>(num_drafts)) {}

  // The probability that the draft is accepted if all before it are. A confidence need not be
  // calibrated: only its ratio to the mean at the same index counts.
  double probability(size_t draft_idx, double confidence) const;
  // probability() of a draft of mean confidence.
  double mean(size_t draft_idx) const;
  // The spans of one step.
  void observe(std::span<const VerifiedSpan> spans);

 private:
  // Sums over the newest steps. A step counts its drafts at this index whose earlier drafts were
  // all accepted.
  struct Position {
    double num_verified = 0;
    double num_accepted = 0;
    double confidence = 0;
  };

  std::vector<Position> positions_;
};

// The choices of one runner. A draft is worth its verification if it raises the step's tokens per
// second, and worth its proposal if it does so in spite of the time of the proposal.
class AdaptiveDrafts {
 public:
  // num_drafts: upper bound per sequence and step. by_confidence: whether choose() decides on each
  // draft separately. Must be false for sampled drafts: a draft's confidence depends on the tokens
  // of the earlier drafts, so a decision about the earlier drafts would bias rejection sampling.
  AdaptiveDrafts(int num_drafts, bool by_confidence);

  // Lowers num_wanted, the numbers of drafts to propose per decoding sequence of the next step, to
  // the numbers that are worth their time. 0: the sequence gets no drafts.
  void lower_wanted(std::span<int32_t> num_wanted) const;

  // A decoding sequence of the step that begins. It has at most as many drafts as the step may
  // verify.
  struct Proposal {
    std::span<const float> confidences = {};  // of each draft, in [0, 1]
    int num_kept = 0;                         // result of choose(): drafts that the step verifies
  };
  // Keeps the drafts that are worth their verification. num_other_rows: rows of the step that are
  // not drafts. Without by_confidence, all drafts are kept, because lower_wanted() has limited
  // them; only a probe keeps fewer, the same number per sequence.
  void choose(std::span<Proposal> proposals, int num_other_rows);

  // Records a step: its time without proposals, and the drafts that it accepted.
  void observe_step(int num_rows, double seconds, std::span<const VerifiedSpan> spans);
  // Records the time to propose at most num_drafts drafts for each of num_seqs sequences.
  void observe_proposal(int num_drafts, int num_seqs, double seconds);

  // One step in kProbePeriod is a probe, which detects better drafts and changed times: one
  // sequence proposes one draft more than is worth it, and the step verifies a random number of all
  // drafts.
  static constexpr int kProbePeriod = 32;

 private:
  // Survival falls along a sequence, so the drafts with the highest survival are always the first
  // drafts of their sequences.
  struct Candidate {
    double survival = 0;  // the probability that the draft and all before it are accepted
    Proposal* proposal = nullptr;
  };
  size_t best_count(std::span<const Candidate> candidates, int64_t num_seqs,
                    int num_other_rows) const;
  void keep_at_most(int64_t count, std::span<Proposal> proposals) const;
  void keep_best(std::span<Proposal> proposals, int num_other_rows) const;
  double proposal_seconds(int num_drafts, int num_seqs) const;
  // Tokens per second of a step in which num_seqs of num_spans sequences verify num_drafts drafts
  // each and propose `num_proposed` drafts each for the next step.
  double rate(int num_spans, int num_seqs, int num_drafts, int num_proposed) const;

  bool is_probe() const { return num_steps_ % kProbePeriod == 0; }
  // A number from 0 to `most` that differs from probe to probe.
  int64_t random_count(int64_t most) const;

  bool by_confidence_;
  int64_t num_steps_ = 0;  // choices so far
  StepTimes step_times_;
  std::vector<StepTimes> proposal_times_;  // by number of drafts; the rows are sequences
  AcceptanceRates rates_;
};

}  // namespace quire
