#include "platform/adaptive_drafts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

#include "base/numbers.h"

namespace quire {
namespace {

// Times are averages of about this many observations.
constexpr int kTimeWindow = 8;
// Rates are averages over about kRateWindow steps, and over about kMostVerified drafts at most.
constexpr int kRateWindow = 64;
constexpr double kMostVerified = 1024;
// The prior of each position: kFirstVerified drafts, accepted at the rate of the position before
// it. A low rate of the first draft therefore lowers all later ones, which are verified less often.
constexpr double kFirstVerified = 3;
constexpr double kFirstRate = 0.8;
// Each number of rows up to this limit has its own bucket; adjacent larger numbers share a bucket.
constexpr int kExactRows = 8;
constexpr double kBucketGrowth = 1.1;
// The first observation may contain first-use costs.
constexpr int kMinObservations = 2;
// Proposes the largest number of drafts whose rate is at least this fraction of the best rate.
// choose() may still verify fewer, when it has their confidences.
constexpr double kNearlyBest = 0.995;

size_t bucket_of(int num_rows) {
  if (num_rows <= kExactRows) return static_cast<size_t>(std::max(num_rows, 0));
  const double steps =
      std::log(static_cast<double>(num_rows) / kExactRows) / std::log(kBucketGrowth);
  return kExactRows + 1 + static_cast<size_t>(steps);
}

// Adds `value`, observation number `count`, to a moving average.
void average_in(double& average, double value, int count) {
  average += (value - average) / std::min(count, kTimeWindow);
}

}  // namespace

void StepTimes::observe(int num_rows, double seconds) {
  const size_t idx = bucket_of(num_rows);
  auto bucket = std::ranges::lower_bound(buckets_, idx, {}, &Bucket::idx);
  if (bucket == buckets_.end() || bucket->idx != idx) {
    bucket = buckets_.insert(bucket, {.idx = idx});
  }
  ++bucket->count;
  average_in(bucket->num_rows, num_rows, bucket->count);
  average_in(bucket->seconds, seconds, bucket->count);
}

bool StepTimes::has_observed(int num_rows) const {
  const size_t idx = bucket_of(num_rows);
  const auto bucket = std::ranges::lower_bound(buckets_, idx, {}, &Bucket::idx);
  return bucket != buckets_.end() && bucket->idx == idx && bucket->count >= kMinObservations;
}

// The time of a step is a convex function of its rows, and does not fall: the weights are read
// once, and each row adds computation. So between two distant observations, no step is faster than
// the line through the two observations on its left, or the line through the two on its right.
double StepTimes::at(double num_rows) const {
  if (buckets_.empty()) return 0;
  const auto above = std::ranges::upper_bound(buckets_, num_rows, {}, &Bucket::num_rows);
  if (above == buckets_.begin()) return above->seconds;
  const auto below = std::prev(above);
  const bool has_before = below != buckets_.begin();
  const double from_left = has_before ? on_line(*std::prev(below), *below, num_rows) : 0;
  const double lowest = below->seconds;
  if (above == buckets_.end()) return std::max(from_left, lowest);
  const double highest = std::max(above->seconds, lowest);
  if (above->idx == below->idx + 1) {
    return std::clamp(on_line(*below, *above, num_rows), lowest, highest);
  }
  const auto after = std::next(above);
  const double from_right = after != buckets_.end() ? on_line(*above, *after, num_rows) : 0;
  return std::clamp(std::max(from_left, from_right), lowest, highest);
}

double StepTimes::on_line(const Bucket& a, const Bucket& b, double num_rows) {
  return a.seconds + (b.seconds - a.seconds) / (b.num_rows - a.num_rows) * (num_rows - a.num_rows);
}

double AcceptanceRates::mean(size_t draft_idx) const {
  double rate = kFirstRate;
  for (const Position& position : std::span(positions_).first(draft_idx + 1)) {
    rate =
        (position.num_accepted + kFirstVerified * rate) / (position.num_verified + kFirstVerified);
  }
  return rate;
}

double AcceptanceRates::probability(size_t draft_idx, double confidence) const {
  const Position& position = positions_[draft_idx];
  if (position.confidence <= 0) return mean(draft_idx);
  const double mean_confidence = position.confidence / position.num_verified;
  return std::min(mean(draft_idx) * confidence / mean_confidence, 1.0);
}

void AcceptanceRates::observe(std::span<const VerifiedSpan> spans) {
  for (size_t i = 0; i < positions_.size(); ++i) {
    Position step;
    for (const VerifiedSpan& span : spans) {
      const auto num_accepted = static_cast<size_t>(span.num_accepted);
      // The drafts after the first rejected one were not compared.
      if (i >= span.confidences.size() || i > num_accepted) continue;
      step.num_verified += 1;
      step.num_accepted += i < num_accepted ? 1 : 0;
      step.confidence += span.confidences[i];
    }
    if (step.num_verified == 0) continue;
    Position& sums = positions_[i];
    const double kept = std::min(1 - 1.0 / kRateWindow, kMostVerified / (sums.num_verified + 1));
    sums.num_verified = kept * sums.num_verified + step.num_verified;
    sums.num_accepted = kept * sums.num_accepted + step.num_accepted;
    sums.confidence = kept * sums.confidence + step.confidence;
  }
}

AdaptiveDrafts::AdaptiveDrafts(int num_drafts, bool by_confidence)
    : by_confidence_(by_confidence),
      proposal_times_(1 + static_cast<size_t>(num_drafts)),
      rates_(num_drafts) {}

double AdaptiveDrafts::proposal_seconds(int num_drafts, int num_seqs) const {
  const auto known = [&](int k) {
    return proposal_times_[static_cast<size_t>(k)].has_observed(num_seqs);
  };
  const auto at = [&](int k) { return proposal_times_[static_cast<size_t>(k)].at(num_seqs); };
  if (known(num_drafts)) return at(num_drafts);
  // Scales the time of the next larger number of drafts, or otherwise of the next smaller number.
  const int most = static_cast<int>(proposal_times_.size()) - 1;
  for (int k = num_drafts + 1; k <= most; ++k) {
    if (known(k)) return at(k) * num_drafts / k;
  }
  for (int k = num_drafts - 1; k > 0; --k) {
    if (known(k)) return at(k) * num_drafts / k;
  }
  return 0;
}

double AdaptiveDrafts::rate(int num_spans, int num_seqs, int num_drafts, int num_proposed) const {
  double survival = 1;
  double num_tokens = num_spans;
  for (int i = 0; i < num_drafts; ++i) {
    survival *= rates_.mean(static_cast<size_t>(i));
    num_tokens += survival * num_seqs;
  }
  const double seconds =
      step_times_.at(num_spans + num_seqs * num_drafts) + proposal_seconds(num_proposed, num_seqs);
  return num_tokens / std::max(seconds, 1e-9);
}

void AdaptiveDrafts::lower_wanted(std::span<int32_t> num_wanted) const {
  const auto num_spans = static_cast<int>(num_wanted.size());
  const auto num_seqs = static_cast<int>(
      std::ranges::count_if(num_wanted, [](int32_t wanted) { return wanted > 0; }));
  if (num_seqs == 0 || !step_times_.has_observed(num_spans)) return;
  std::vector<double> best_rates;  // by number of proposed drafts
  for (int proposed = 0; proposed < static_cast<int>(proposal_times_.size()); ++proposed) {
    double best = 0;
    for (int kept = 0; kept <= proposed; ++kept) {
      best = std::max(best, rate(num_spans, num_seqs, kept, proposed));
    }
    best_rates.push_back(best);
  }
  const double enough = kNearlyBest * std::ranges::max(best_rates);
  int most = static_cast<int>(best_rates.size()) - 1;
  while (best_rates[static_cast<size_t>(most)] < enough) --most;
  bool probes = (num_steps_ + 1) % kProbePeriod == 0;
  for (int32_t& wanted : num_wanted) {
    const bool is_probe = probes && wanted > most;
    wanted = std::min(wanted, is_probe ? most + 1 : most);
    probes &= !is_probe;
  }
}

int64_t AdaptiveDrafts::random_count(int64_t most) const {
  return static_cast<int64_t>(mix(static_cast<uint64_t>(num_steps_)) %
                              static_cast<uint64_t>(most + 1));
}

void AdaptiveDrafts::choose(std::span<Proposal> proposals, int num_other_rows) {
  ++num_steps_;
  if (!step_times_.has_observed(num_other_rows)) return keep_at_most(0, proposals);
  if (by_confidence_) return keep_best(proposals, num_other_rows);
  const auto most = std::ssize(proposal_times_) - 1;
  keep_at_most(is_probe() ? random_count(most) : most, proposals);
}

void AdaptiveDrafts::keep_at_most(int64_t count, std::span<Proposal> proposals) const {
  for (Proposal& proposal : proposals) {
    proposal.num_kept = static_cast<int>(std::min(count, std::ssize(proposal.confidences)));
  }
}

void AdaptiveDrafts::keep_best(std::span<Proposal> proposals, int num_other_rows) const {
  std::vector<Candidate> candidates;
  for (Proposal& proposal : proposals) {
    proposal.num_kept = 0;
    double survival = 1;
    for (size_t i = 0; i < proposal.confidences.size(); ++i) {
      survival *= rates_.probability(i, proposal.confidences[i]);
      candidates.push_back({.survival = survival, .proposal = &proposal});
    }
  }
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::survival);
  const size_t num_kept = is_probe()
                              ? static_cast<size_t>(random_count(std::ssize(candidates)))
                              : best_count(candidates, std::ssize(proposals), num_other_rows);
  for (const Candidate& candidate : std::span(candidates).first(num_kept)) {
    ++candidate.proposal->num_kept;
  }
}

// Returns how many of the first candidates give the most tokens per second.
size_t AdaptiveDrafts::best_count(std::span<const Candidate> candidates, int64_t num_seqs,
                                  int num_other_rows) const {
  auto num_tokens = static_cast<double>(num_seqs);
  double best_rate = num_tokens / step_times_.at(num_other_rows);
  size_t best = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    num_tokens += candidates[i].survival;
    const double rate = num_tokens / step_times_.at(num_other_rows + static_cast<double>(i + 1));
    if (rate <= best_rate) continue;
    best_rate = rate;
    best = i + 1;
  }
  return best;
}

void AdaptiveDrafts::observe_proposal(int num_drafts, int num_seqs, double seconds) {
  proposal_times_[static_cast<size_t>(num_drafts)].observe(num_seqs, seconds);
}

void AdaptiveDrafts::observe_step(int num_rows, double seconds,
                                  std::span<const VerifiedSpan> spans) {
  step_times_.observe(num_rows, seconds);
  rates_.observe(spans);
}

}  // namespace quire
