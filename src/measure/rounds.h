// Compares candidates by their times, for every choice that Quire makes by measurement.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "quire/status.h"

namespace quire {

// The middle value; of two middle values, the larger one. `values` must not be empty.
double median(std::vector<double> values);

// The times of one candidate, all in one unit. With an error, the candidate has failed, even if it
// has times of earlier rounds.
struct Trial {
  std::vector<double> times = {};
  Status error = {};

  double median() const { return quire::median(times); }
  double shortest() const;  // infinity without times
  // The ratio of the second shortest time to the shortest, minus 1; 0 with fewer than two times.
  double scatter() const;
};

// Bounds the time of a comparison.
struct Effort {
  int num_rounds = 1;
  // Only the finalists take part in later rounds: at most max_finalists candidates, whose first
  // times are at most near_best times the shortest first time. If only one of several candidates is
  // left, there are no later rounds.
  double near_best = std::numeric_limits<double>::infinity();
  size_t max_finalists = std::numeric_limits<size_t>::max();
  // After this time, no further round begins. The first round always runs.
  std::chrono::duration<double> time_limit = std::chrono::duration<double>::max();
};

// Runs one round. For each of `candidates`, which are indexes into `trials`, adds at least one time
// or sets the error. A returned error ends the whole comparison.
using RunRound = std::function<Status(std::span<const size_t> candidates, std::span<Trial> trials)>;

struct Comparison {
  std::vector<Trial> trials;      // by candidate
  std::vector<size_t> finalists;  // ascending candidates without an error; empty: all failed

  // Returns the fastest finalist by median. A finalist replaces the best one before it only if its
  // median is below max_ratio times the other median, so the order of the candidates matters.
  size_t fastest(double max_ratio = 1.0) const;
};

// All candidates of a round run before the next round, so that a change of the machine's speed
// affects all of them.
Result<Comparison> compare(size_t num_candidates, const Effort& effort, const RunRound& run_round);

// A round in which the candidates run one after the other. An error of `time` excludes only that
// candidate.
RunRound one_by_one(std::function<Result<double>(size_t candidate)> time);
// Like one_by_one(), but an error of `time` ends the comparison.
RunRound one_by_one_or_fail(std::function<Result<double>(size_t candidate)> time);

}  // namespace quire
