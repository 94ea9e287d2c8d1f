#include "cuda/step/draft_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/log.h"

namespace quire::cuda {
namespace {

// Steps timed together, so that the host enqueues each while the previous one runs, as in serving.
constexpr int kNumTimed = 3;

// Seconds per call of `enqueue`, after one that is not timed: the first launch of a graph uploads
// it.
Result<double> seconds_of(const Stopwatch& stopwatch, CudaStream& stream,
                          const std::function<Status()>& enqueue) {
  QUIRE_RETURN_IF_ERROR(enqueue());
  QUIRE_ASSIGN_OR_RETURN(const double us, stopwatch.time(stream, [&]() -> Status {
    for (int i = 0; i < kNumTimed; ++i) QUIRE_RETURN_IF_ERROR(enqueue());
    return {};
  }));
  return us * 1e-6 / kNumTimed;
}

}  // namespace

std::vector<int> measured_batch_sizes(std::span<const int> batch_sizes) {
  std::vector<int> measured;
  for (const int size : batch_sizes) {
    const bool is_last = size == batch_sizes.back();
    if (measured.empty() || 3 * size >= 4 * measured.back() || is_last) measured.push_back(size);
  }
  return measured;
}

DraftCosts measured_draft_steps(const DecodeGraphs& graphs) {
  QUIRE_CHECK(graphs.q_lens().front() == 1, "[cuda] no graph decodes without drafts");
  DraftCosts steps;
  steps.batch_sizes = measured_batch_sizes(graphs.batch_sizes());
  for (const int q_len : graphs.q_lens()) steps.num_drafts.push_back(q_len - 1);
  return steps;
}

Result<DraftCosts> measure_draft_costs(const DecodeGraphs& graphs, DraftCosts steps,
                                       const PaddingStep& step, CudaStream& stream) {
  QUIRE_ASSIGN_OR_RETURN(const Stopwatch stopwatch, Stopwatch::create());
  for (const int num_reqs : steps.batch_sizes) {
    for (const int num_drafts : steps.num_drafts) {
      const DecodeGraph& graph = *graphs.find(
          {.num_reqs = num_reqs, .max_kv_len = graphs.max_model_len(), .q_len = 1 + num_drafts});
      QUIRE_ASSIGN_OR_RETURN(const double verify,
                             seconds_of(stopwatch, stream, [&] { return step.verify(graph); }));
      QUIRE_ASSIGN_OR_RETURN(const double propose, seconds_of(stopwatch, stream, [&] {
                               return step.propose(graph, num_drafts);
                             }));
      steps.verify_seconds.push_back(verify);
      steps.propose_seconds.push_back(propose);
    }
  }
  return steps;
}

void log_draft_costs(const DraftCosts& costs) {
  const size_t num_choices = costs.num_drafts.size();
  for (const size_t size : {size_t{0}, costs.batch_sizes.size() - 1}) {
    const auto range = [&](const std::vector<double>& all) {
      const size_t first = size * num_choices;
      return fmt::format("{:.2f} to {:.2f} ms", 1e3 * all[first],
                         1e3 * all[first + num_choices - 1]);
    };
    log_info("[measure] with {} sequences, a step takes {}, and the drafter after it {}",
             costs.batch_sizes[size], range(costs.verify_seconds), range(costs.propose_seconds));
  }
}

}  // namespace quire::cuda
