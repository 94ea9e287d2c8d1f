#include "start/measured_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "start/kept_file.h"

namespace quire {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// ---- The batches

// The sizes up to the limit; the smallest, if all are above it.
std::vector<int> up_to(int limit, std::initializer_list<int> sizes) {
  std::vector<int> kept;
  std::ranges::copy_if(sizes, std::back_inserter(kept), [&](int size) { return size <= limit; });
  if (kept.empty()) kept.push_back(std::min(sizes));
  return kept;
}

// The shortest and the longest query length: other kernels may be the fastest for several query
// tokens. The nearest of the two decides the lengths between them.
std::vector<int> measured_q_lens(const MeasuredSteps& steps) {
  const int longest = steps.decode_q_lens.back();
  if (steps.decode_q_lens.size() == 1) return {longest};
  return {steps.decode_q_lens.front(), longest};
}

std::vector<AttentionWorkload> decode_workloads(const MeasuredSteps& steps) {
  std::vector<AttentionWorkload> workloads;
  for (const int kv_len : up_to(steps.max_kv_len, {8192, 1024, 32'768})) {
    for (const int num_reqs : up_to(steps.max_num_seqs, {64, 1, 16, 256})) {
      for (const int q_len : measured_q_lens(steps)) {
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

std::vector<AttentionWorkload> prefill_workloads(const MeasuredSteps& steps) {
  std::vector<AttentionWorkload> workloads;
  const int longest = std::min(steps.max_num_tokens, steps.max_kv_len);
  for (const int num_tokens : up_to(longest, {2048, 512, 8192})) {
    workloads.push_back(full_workload(Phase::kPrefill, 1, num_tokens, num_tokens));
  }
  return workloads;
}

// ---- The file

TuningTable read_kept(const fs::path& file) {
  if (file.empty()) return {};
  const Result<bool> exists = path_exists(file);
  if (exists.ok() && !*exists) return {};
  Result<TuningTable> table = TuningTable::read(file.string());
  if (table.ok()) return std::move(*table);
  log_warning("[attention] kept times cannot be used and are measured anew: {}",
              table.status().message());
  return {};
}

void keep(const fs::path& file, std::string_view device, std::span<const TuningRow> rows) {
  if (file.empty()) {
    log_warning(
        "[attention] the measured times cannot be kept: neither XDG_CACHE_HOME nor HOME is set; "
        "the next start measures again");
    return;
  }
  const std::string text = fmt::format(
      "# {}: times that starts of Quire measured. Quire may overwrite or delete this file.\n{}",
      device, to_csv(rows));
  const Status written = replace_file(file, text);
  if (!written.ok()) {
    log_warning(
        "[attention] the measured times cannot be kept, so the next start measures again: {}",
        written.message());
  }
}

// ---- The measurement

// The workloads of one shape that several backends compete for and whose times are not known.
struct Missing {
  AttentionShape shape;
  std::vector<AttentionBackend*> backends;
  std::vector<AttentionWorkload> workloads;
};

std::vector<Missing> find_missing(std::span<const AttentionSelector> selectors,
                                  const MeasuredSteps& steps, const TuningTable& known) {
  std::vector<TuningPoint> points;  // known or to be measured
  for (const TuningTable::MeasuredPoint& measured : known.points()) {
    points.push_back(measured.point);
  }
  std::vector<Missing> all;
  for (const AttentionSelector& selector : selectors) {
    for (const Phase phase : {Phase::kPrefill, Phase::kDecode}) {  // few prompts, many steps
      Missing missing{.shape = selector.shape(phase), .backends = {}, .workloads = {}};
      for (AttentionWorkload& workload : start_workloads(phase, steps)) {
        const auto candidates = selector.candidates(use_of(workload));
        const TuningPoint point = tuning_point(missing.shape, workload);
        if (candidates.size() < 2 || std::ranges::find(points, point) != points.end()) continue;
        missing.backends.assign(candidates.begin(), candidates.end());
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

  // Called after the first batch of a shape, which is not counted: it loads kernels and builds
  // cuDNN's plans, as every start does.
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

std::vector<TuningRow> measure(std::span<const Missing> all, const MeasuredTableConfig& config) {
  const Clock::time_point start = Clock::now();
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
  log_info(
      "[attention] measured {} of {} batches in {:.1f} s, because no times are known for {}; "
      "`quire tune` measures more of them",
      num_measured, num_batches, Seconds(Clock::now() - start).count(), config.device);
  return rows;
}

}  // namespace

std::vector<AttentionWorkload> start_workloads(Phase phase, const MeasuredSteps& steps) {
  return phase == Phase::kDecode ? decode_workloads(steps) : prefill_workloads(steps);
}

TuningTable measured_table(std::span<const AttentionSelector> selectors,
                           const MeasuredTableConfig& config) {
  const TuningTable known = read_kept(config.file);
  const std::vector<Missing> missing = find_missing(selectors, config.steps, known);
  if (missing.empty()) return known;
  std::vector<TuningRow> rows = known.rows();
  const size_t num_known = rows.size();
  std::ranges::move(measure(missing, config), std::back_inserter(rows));
  if (rows.size() > num_known) keep(config.file, config.device, rows);
  return TuningTable(rows);
}

fs::path measured_table_file(std::string_view device, std::string_view driver) {
  return kept_file("attention", {device, driver});
}

}  // namespace quire
