// Measuring the attention backends of a GPU: for quire tune, and for quire bench attention.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "attn/workload.h"
#include "platform/platform.h"

namespace quire {

struct MeasureConfig {
  AttentionShape shape = {};
  std::vector<AttentionWorkload> workloads = {};
  // Of calls by the host; 0 trials: device times only.
  int num_warmups = 0;
  int num_trials = 0;
  // Calls of a millisecond and more are measured fewer times.
  bool spare_long_calls = false;
};

// One backend at one workload. Its columns in tables are called event_us and graph_us.
struct AttentionTimes {
  std::string_view backend;
  Status status = {};     // why there are no times
  double graph_us = 0.0;  // of the device: a call, captured in a CUDA graph and replayed
  std::vector<double> event_us = {};  // one a trial: CUDA events around the host's call
};

struct MeasuredWorkload {
  bool repeats_pages = false;         // the memory does not hold as many distinct ones
  std::vector<AttentionTimes> times;  // of the backends that support it, in the set's order
};

// Hears of each workload once it is measured; false: no further ones.
using OnMeasured = std::function<bool(size_t workload_idx, const MeasuredWorkload& measured)>;

// Measures those of `backends` that support the shape, taking turns, so that what slows the device
// down for a while slows all of them. The context is one of make_cuda_platform. Fails where there
// is no GPU or no memory; what a single backend cannot do is in its status.
Status measure_attention(DeviceContext& context, std::span<AttentionBackend* const> backends,
                         const MeasureConfig& config, const OnMeasured& on_measured);

}  // namespace quire
