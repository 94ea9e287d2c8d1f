// What `quire bench attention` found, as a table, CSV and JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/workload.h"

namespace quire::cli {

// A backend's microseconds in one row.
struct AttentionCell {
  double graph_us = 0.0;  // of the device, by graph replay
  double event_us = 0.0;  // by CUDA events around the host's call: mean and standard deviation
  double event_std_us = 0.0;
};

struct AttentionRow {
  int num_seqs = 0;
  int max_kv_len = 0;
  int q_len = 1;
  double work = 0.0;  // bytes of keys and values to read; of prompts, floating-point operations
  bool repeats_pages = false;  // where the grid's are distinct: the memory does not hold them
  std::vector<std::optional<AttentionCell>> cells = {};  // of AttentionReport::backends
  std::string auto_backend = {};

  std::optional<size_t> best() const;  // by graph_us
  std::optional<double> graph_us(std::string_view backend,
                                 const std::vector<std::string>& backends) const;
};

struct AttentionReport {
  std::string device;
  std::string shape;
  std::string grid;
  Phase phase = Phase::kDecode;
  double peak = 0.0;  // bytes, or operations, in a microsecond
  std::vector<std::string> backends = {};
  std::vector<AttentionRow> rows = {};

  // What auto takes over the best's time; nothing where auto's was not measured.
  std::optional<double> auto_over_best(const AttentionRow& row) const;
};

// Over the rows that every backend has times in.
struct AttentionSummary {
  size_t num_rows = 0;
  std::vector<double> geomean_us;  // of AttentionReport::backends
  double auto_us = 0.0;
  double best_us = 0.0;
  const AttentionRow* worst = nullptr;  // for auto, of all rows
};
AttentionSummary summarize(const AttentionReport& report);

std::string to_table(const AttentionReport& report);
std::string to_csv(const AttentionReport& report);
std::string to_json(const AttentionReport& report);

}  // namespace quire::cli
