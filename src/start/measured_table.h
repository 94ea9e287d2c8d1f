// The tuning table of a device without a built-in one: measured at start, and kept.
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

// The batches that decide between backends, the most informative first, because the time limit may
// end the measurement. Sizes are fixed ones, so that starts with other limits find them among the
// kept choices. Steps beyond the limits of `sizes` never run, so they are left out. Of several
// query lengths, the shortest and the longest are measured.
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

// Measures the batches that `choices` lacks, for each use that several candidates of these
// selectors could serve, until the time limit is near; the next start continues. The limit does not
// count the first batch of a shape, which loads kernels. The times are added to `choices`. An error
// is logged, and the table then lacks those times: a start does not fail for them.
TuningTable measured_table(std::span<const AttentionSelector> selectors,
                           const MeasuredTableConfig& config, MeasuredChoices& choices);

}  // namespace quire
