// Measures the attention backends of a GPU: for `quire tune` and `quire bench attention`, and at
// start on a GPU without a tuning table.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/selection.h"
#include "attn/tuning_table.h"
#include "platform/platform.h"

namespace quire {

// A batch that attention is measured with.
struct AttentionWorkload {
  Phase phase = Phase::kDecode;
  int q_len = 1;                 // query tokens per request, at the end of its context
  int max_kv_len = 0;            // upper bound of the lengths drawn; the longest may be lower
  bool ragged = false;           // TuningPoint::ragged
  std::vector<int32_t> kv_lens;  // [num_reqs], from q_len to max_kv_len
  // Pages are drawn with replacement from this many pages. 0: all pages are distinct and shuffled,
  // as far as the memory allows.
  int64_t pool_pages = 0;

  int num_reqs() const { return static_cast<int>(kv_lens.size()); }
  int longest() const;  // the longest context, as given to backends
};

// A workload in which every request has the full length.
AttentionWorkload full_workload(Phase phase, int num_reqs, int q_len, int kv_len);
// Draws lengths uniformly from [q_len, max_kv_len]; they depend only on the arguments.
AttentionWorkload ragged_workload(int num_reqs, int q_len, int max_kv_len, uint64_t seed);

// The pages of all requests.
int64_t num_pages(const AttentionWorkload& workload, int page_size);
// The key of a decode step with these lengths.
DecodeKey workload_key(const AttentionWorkload& workload);
// The use of such a batch in the engine: decode in graphs, prompts eagerly.
AttentionUse use_of(const AttentionWorkload& workload);
TuningPoint tuning_point(const AttentionShape& shape, const AttentionWorkload& workload);

struct MeasureConfig {
  AttentionShape shape = {};
  std::vector<AttentionWorkload> workloads = {};
  // Host calls per workload. 0 trials: only device times are measured.
  int num_warmups = 0;
  int num_trials = 0;
  // If true, calls of 1 ms or more are measured fewer times.
  bool sample_long_calls_less = false;
};

// The times of one backend at one workload, shown in tables as event_us and graph_us.
struct AttentionTimes {
  std::string_view backend;
  Status status = {};                 // why there are no times
  double graph_us = 0.0;              // device time per call, captured in a CUDA graph and replayed
  std::vector<double> event_us = {};  // one per trial: CUDA events around the host's call
};

struct MeasuredWorkload {
  bool repeats_pages = false;         // the memory cannot hold enough distinct pages
  std::vector<AttentionTimes> times;  // of the backends that support it, in the set's order
};

// The rows of a tuning table: one per backend that was measured without an error.
std::vector<TuningRow> tuning_rows(const AttentionShape& shape, const AttentionWorkload& workload,
                                   const MeasuredWorkload& measured);

// Called after each workload is measured; returning false ends the measurement.
using OnMeasured = std::function<bool(size_t workload_idx, const MeasuredWorkload& measured)>;

// Measures the `backends` that support the shape. The backends alternate, so that a temporary
// slowdown of the device affects all of them. The context must come from make_cuda_platform. Fails
// when there is no GPU or no memory; an error of a single backend is in its AttentionTimes::status.
Status measure_attention(DeviceContext& context, std::span<AttentionBackend* const> backends,
                         const MeasureConfig& config, const OnMeasured& on_measured);

}  // namespace quire
