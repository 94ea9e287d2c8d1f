// Measures the tuning table of a device without a built-in one at start. MeasuredChoices keeps the
// times in a file.
#pragma once

#include <chrono>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "attn/selection.h"
#include "attn/tuning_table.h"
#include "measure/choices.h"
#include "platform/platform.h"
#include "platform/tune.h"

namespace quire {

// The batches by whose times a backend is selected, the most informative first, because the time
// limit may end the measurement. Their sizes are fixed, so that starts with other limits find them
// among the kept choices. Sizes beyond the limits of `sizes` are left out. If all are, the smallest
// is measured. Of several query lengths, the shortest and the longest are measured.
std::vector<AttentionWorkload> start_workloads(Phase phase, const RunnerSizes& sizes);

// Like quire::measure_attention() on one device.
using MeasureAttention =
    std::function<Status(std::span<AttentionBackend* const> backends, const MeasureConfig& config,
                         const OnMeasured& on_measured)>;

struct MeasuredTableConfig {
  RunnerSizes sizes;
  std::chrono::duration<double> time_limit = std::chrono::seconds(2);
  MeasureAttention measure;
};

// Measures the batches that `choices` lacks, of uses for which a selector has several candidates,
// and adds the times to `choices`. Stops when the next batch could exceed the time limit; the next
// start continues. The first batch of a shape, which loads kernels, does not count. An error is
// logged and ends the measurement, but not the start.
TuningTable measured_table(std::span<const AttentionSelector> selectors,
                           const MeasuredTableConfig& config, MeasuredChoices& choices);

}  // namespace quire
