// The results of `quire bench attention`, as a table, CSV and JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend.h"

namespace quire::bench {

// The times of one backend for one row of the grid, in microseconds.
struct AttentionCell {
  double graph_us = 0.0;  // device time, by graph replay
  double event_us = 0.0;  // mean time between CUDA events around the call
  double event_std_us = 0.0;
};

struct AttentionRow {
  int num_seqs = 0;
  int max_kv_len = 0;
  int q_len = 1;
  double work = 0.0;  // decode: bytes of keys and values read; prefill: floating-point operations
  bool repeats_pages = false;  // pages repeat because distinct ones do not fit in memory
  std::vector<std::optional<AttentionCell>> cells = {};  // per AttentionReport::backends
  std::string auto_backend = {};

  std::optional<size_t> best() const;  // lowest graph_us
  std::optional<double> graph_us(std::string_view backend,
                                 const std::vector<std::string>& backends) const;
};

struct AttentionReport {
  std::string device;
  std::string shape;
  std::string grid;
  Phase phase = Phase::kDecode;
  double peak = 0.0;  // bytes or operations per microsecond
  std::vector<std::string> backends = {};
  std::vector<AttentionRow> rows = {};

  // The time of auto divided by the best time; nullopt if auto was not measured.
  std::optional<double> auto_over_best(const AttentionRow& row) const;
};

// Summarizes the rows in which every backend has a time.
struct AttentionSummary {
  size_t num_rows = 0;
  std::vector<double> geomean_us;  // per AttentionReport::backends
  double auto_us = 0.0;
  double best_us = 0.0;
  const AttentionRow* worst = nullptr;  // largest auto_over_best, of all rows
};
AttentionSummary summarize(const AttentionReport& report);

std::string to_table(const AttentionReport& report);
std::string to_csv(const AttentionReport& report);
std::string to_json(const AttentionReport& report);

}  // namespace quire::bench
