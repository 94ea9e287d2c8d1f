#include "start/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "base/ascii.h"
#include "base/log.h"
#include "base/text_input.h"

namespace quire {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// ---- The batches

// Returns the sizes up to the limit, or the smallest size if all are above it.
std::vector<int> up_to(int limit, std::initializer_list<int> sizes) {
  std::vector<int> kept;
  std::ranges::copy_if(sizes, std::back_inserter(kept), [&](int size) { return size <= limit; });
  if (kept.empty()) kept.push_back(std::min(sizes));
  return kept;
}

// The shortest and the longest query length: the fastest kernel may differ between one query token
// and several. A length between them uses the times of the nearer one.
std::vector<int> measured_q_lens(const RunnerSizes& sizes) {
  const int longest = sizes.decode_q_lens.back();
  if (sizes.decode_q_lens.size() == 1) return {longest};
  return {sizes.decode_q_lens.front(), longest};
}

std::vector<AttentionWorkload> decode_workloads(const RunnerSizes& sizes) {
  std::vector<AttentionWorkload> workloads;
  for (const int kv_len : up_to(sizes.limits.max_kv_len(), {8192, 1024, 32'768})) {
    for (const int num_reqs : up_to(sizes.max_num_seqs, {64, 1, 16, 256})) {
      for (const int q_len : measured_q_lens(sizes)) {
        if (num_reqs > 1) {  // one request is never ragged
          constexpr uint64_t kSeed = 0;
          workloads.push_back(ragged_workload(num_reqs, q_len, kv_len, kSeed));
        }
        workloads.push_back(full_workload(Phase::kDecode, num_reqs, q_len, kv_len));
      }
    }
  }
  return workloads;
}

std::vector<AttentionWorkload> prefill_workloads(const RunnerSizes& sizes) {
  std::vector<AttentionWorkload> workloads;
  const int longest = std::min(sizes.limits.max_num_tokens, sizes.limits.max_kv_len());
  for (const int num_tokens : up_to(longest, {2048, 512, 8192})) {
    workloads.push_back(full_workload(Phase::kPrefill, 1, num_tokens, num_tokens));
  }
  return workloads;
}

// ---- The kept times

// Each row of the table's CSV form is a kept choice: the last field is its value, and the other
// fields are its key.
TuningTable known_times(MeasuredChoices& choices) {
  std::string csv = to_csv({});
  for (const auto& [fields, us] : choices.all(ChoiceKind::kAttention)) {
    csv += fmt::format("{},{}\n", fields, us);
  }
  Result<TuningTable> table = TuningTable::parse(csv, choices.file().string());
  if (table.ok()) return std::move(*table);
  log_warning("[measure] the kept times of attention are measured again: {}",
              table.status().message());
  return {};
}

void keep(std::span<const TuningRow> rows, MeasuredChoices& choices) {
  const std::string csv = to_csv(rows);
  std::vector<std::string_view> lines = split(trimmed(csv), '\n');
  for (const std::string_view line : std::span(lines).subspan(1)) {
    const size_t last = line.rfind(',');
    choices.add(ChoiceKind::kAttention, line.substr(0, last), line.substr(last + 1));
  }
}

// ---- The measurement

// The workloads of one shape that several backends support and whose times are not known.
struct Missing {
  AttentionShape shape;
  // The backends that support any of the workloads. Each is measured with the workloads that it
  // supports.
  std::vector<AttentionBackend*> backends;
  std::vector<AttentionWorkload> workloads;
};

std::vector<Missing> find_missing(std::span<const AttentionSelector> selectors,
                                  const RunnerSizes& sizes, const TuningTable& known) {
  std::vector<TuningPoint> points;  // known or to be measured
  for (const TuningTable::MeasuredPoint& measured : known.points()) {
    points.push_back(measured.point);
  }
  std::vector<Missing> all;
  for (const AttentionSelector& selector : selectors) {
    // Prompts come first, because there are few of them.
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {
      Missing missing{.shape = selector.shape(phase), .backends = {}, .workloads = {}};
      for (AttentionWorkload& workload : start_workloads(phase, sizes)) {
        const auto candidates = selector.candidates(use_of(workload));
        const TuningPoint point = tuning_point(missing.shape, workload);
        if (candidates.size() < 2 || std::ranges::find(points, point) != points.end()) continue;
        for (AttentionBackend* candidate : candidates) {
          if (std::ranges::find(missing.backends, candidate) != missing.backends.end()) continue;
          missing.backends.push_back(candidate);
        }
        missing.workloads.push_back(std::move(workload));
        points.push_back(point);
      }
      if (!missing.workloads.empty()) all.push_back(std::move(missing));
    }
  }
  return all;
}

// Bounds the time of the measurement: a batch starts only if the longest one so far would still end
// in time.
class TimeLimit {
 public:
  explicit TimeLimit(Seconds limit) : limit_(limit) {}

  // Called after the first batch of a shape. Its time does not count, because every start loads
  // kernels and builds cuDNN's plans.
  void leave_out_batch() { last_ = Clock::now(); }
  // Called after every other batch. Returns whether another one may start.
  bool allows_another() {
    const Clock::time_point now = Clock::now();
    const Seconds batch = now - std::exchange(last_, now);
    used_ += batch;
    longest_ = std::max(longest_, batch);
    return used_ + longest_ < limit_;
  }

 private:
  Seconds limit_;
  Clock::time_point last_ = Clock::now();
  Seconds used_ = Seconds::zero();
  Seconds longest_ = Seconds::zero();
};

std::vector<TuningRow> measure(std::span<const Missing> all, const MeasuredTableConfig& config,
                               MeasuredChoices& choices) {
  const MeasuredChoices::Timing timing(choices, ChoiceKind::kAttention);
  size_t num_batches = 0;
  size_t num_measured = 0;
  TimeLimit time_limit(config.time_limit);
  std::vector<TuningRow> rows;
  bool may_continue = true;
  for (const Missing& missing : all) {
    num_batches += missing.workloads.size();
    if (!may_continue) continue;
    const MeasureConfig batches{
        .shape = missing.shape, .workloads = missing.workloads, .sample_long_calls_less = true};
    const auto on_measured = [&](size_t i, const MeasuredWorkload& measured) {
      ++num_measured;
      std::ranges::move(tuning_rows(missing.shape, missing.workloads[i], measured),
                        std::back_inserter(rows));
      if (i == 0) {
        time_limit.leave_out_batch();
      } else {
        may_continue = time_limit.allows_another();
      }
      return may_continue;
    };
    const Status status = config.measure(missing.backends, batches, on_measured);
    if (!status.ok()) {
      log_warning("[attention] backends cannot be measured: {}", status.message());
      return rows;
    }
  }
  if (num_measured < num_batches) {
    log_info(
        "[measure] the time limit left {} of {} batches of attention unmeasured; the next start or "
        "quire tune measures them",
        num_batches - num_measured, num_batches);
  }
  return rows;
}

}  // namespace

std::vector<AttentionWorkload> start_workloads(Phase phase, const RunnerSizes& sizes) {
  return phase == Phase::kDecode ? decode_workloads(sizes) : prefill_workloads(sizes);
}

TuningTable measured_table(std::span<const AttentionSelector> selectors,
                           const MeasuredTableConfig& config, MeasuredChoices& choices) {
  const TuningTable known = known_times(choices);
  const std::vector<Missing> missing = find_missing(selectors, config.sizes, known);
  if (missing.empty()) return known;
  const std::vector<TuningRow> measured = measure(missing, config, choices);
  keep(measured, choices);
  std::vector<TuningRow> rows = known.rows();
  rows.insert(rows.end(), measured.begin(), measured.end());
  return TuningTable(rows);
}

}  // namespace quire
