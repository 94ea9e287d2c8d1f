#include "measure/rounds.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;

void leave_out_failed(std::vector<size_t>& candidates, std::span<const Trial> trials) {
  std::erase_if(candidates, [&](size_t i) { return !trials[i].error.ok(); });
}

void keep_finalists(std::vector<size_t>& candidates, std::span<const Trial> trials,
                    const Effort& effort) {
  const auto first_time = [&](size_t i) { return trials[i].times.front(); };
  std::ranges::stable_sort(candidates, {}, first_time);
  candidates.resize(std::min(candidates.size(), effort.max_finalists));
  const double most = effort.near_best * first_time(candidates.front());
  std::erase_if(candidates, [&](size_t i) { return first_time(i) > most; });
  std::ranges::sort(candidates);
}

RunRound one_after_the_other(std::function<Result<double>(size_t candidate)> time,
                             bool ends_at_errors) {
  return [time = std::move(time), ends_at_errors](std::span<const size_t> candidates,
                                                  std::span<Trial> trials) -> Status {
    for (const size_t i : candidates) {
      const Result<double> measured = time(i);
      if (measured.ok()) {
        trials[i].times.push_back(*measured);
      } else if (ends_at_errors) {
        return measured.status();
      } else {
        trials[i].error = measured.status();
      }
    }
    return {};
  };
}

}  // namespace

double median(std::vector<double> values) {
  QUIRE_CHECK(!values.empty(), "[measure] the median of no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double Trial::shortest() const {
  return times.empty() ? std::numeric_limits<double>::infinity() : std::ranges::min(times);
}

double Trial::scatter() const {
  if (times.size() < 2) return 0.0;
  std::vector<double> sorted = times;
  std::ranges::partial_sort(sorted, sorted.begin() + 2);
  return sorted[1] / sorted[0] - 1.0;
}

size_t Comparison::fastest(double max_ratio) const {
  QUIRE_CHECK(!finalists.empty(), "[measure] no candidate was measured");
  size_t best = finalists.front();
  for (const size_t i : finalists) {
    if (trials[i].median() < max_ratio * trials[best].median()) best = i;
  }
  return best;
}

Result<Comparison> compare(size_t num_candidates, const Effort& effort, const RunRound& run_round) {
  Comparison result;
  result.trials.resize(num_candidates);
  std::vector<size_t>& left = result.finalists;
  left.resize(num_candidates);
  std::iota(left.begin(), left.end(), size_t{0});
  const Clock::time_point start = Clock::now();
  for (int round = 0; round < effort.num_rounds && !left.empty(); ++round) {
    const bool is_decided = round > 0 && num_candidates > 1 && left.size() == 1;
    if (is_decided || (round > 0 && Clock::now() - start > effort.time_limit)) break;
    QUIRE_RETURN_IF_ERROR(run_round(left, result.trials));
    leave_out_failed(left, result.trials);
    if (round == 0 && !left.empty()) keep_finalists(left, result.trials, effort);
  }
  return result;
}

RunRound one_by_one(std::function<Result<double>(size_t candidate)> time) {
  return one_after_the_other(std::move(time), false);
}

RunRound one_by_one_or_fail(std::function<Result<double>(size_t candidate)> time) {
  return one_after_the_other(std::move(time), true);
}

}  // namespace quire
