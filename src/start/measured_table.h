// The tuning table of a device without a built-in one: measured at start, and kept in a file.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "attn/selection.h"
#include "attn/tuning_table.h"
#include "platform/platform.h"
#include "platform/tune.h"

namespace quire {

// Steps beyond these limits never run, so they are not measured.
struct MeasuredSteps {
  int max_num_seqs = 0;
  int max_num_tokens = 0;
  int max_kv_len = 0;
  std::vector<int> decode_q_lens = {1};  // ascending; the first and the last are measured
};

// The batches that decide between backends, the most informative first, because the time limit may
// end the measurement. Sizes are fixed ones, so that starts with other limits find them in the
// file.
std::vector<AttentionWorkload> start_workloads(Phase phase, const MeasuredSteps& steps);

// Like quire::measure_attention() on one device.
using MeasureAttention =
    std::function<Status(std::span<AttentionBackend* const> backends, const MeasureConfig& config,
                         const OnMeasured& on_measured)>;

struct MeasuredTableConfig {
  std::string_view device;     // for the log
  std::filesystem::path file;  // empty: every start measures
  MeasuredSteps steps;
  std::chrono::duration<double> time_limit = std::chrono::seconds(2);
  MeasureAttention measure;
};

// Reads the file and measures the batches that it lacks, for each use that several candidates of
// these selectors could serve, until the time limit is near; the next start continues. The limit
// does not count the first batch of a shape, which loads kernels. The times are added to the file.
// Everything that goes wrong is logged, and the table then lacks those times: a start does not fail
// for them. When two processes start at once, the file keeps the times of one of them.
TuningTable measured_table(std::span<const AttentionSelector> selectors,
                           const MeasuredTableConfig& config);

// The kept_file() of one device, driver and version of Quire.
std::filesystem::path measured_table_file(std::string_view device, std::string_view driver);

}  // namespace quire
