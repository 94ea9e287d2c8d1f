#include "bench/attention_bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_writer.h"

namespace quire::bench {
namespace {

// The rate in GB/s for decode, or TFLOP/s for prefill.
double rate(const AttentionReport& report, double work, double us) {
  return work / us * (report.phase == Phase::kDecode ? 1e-3 : 1e-6);
}
std::string_view rate_unit(const AttentionReport& report) {
  return report.phase == Phase::kDecode ? "GB/s" : "TFLOP/s";
}
std::string_view rate_column(const AttentionReport& report) {
  return report.phase == Phase::kDecode ? "best_GBps" : "best_TFLOPs";
}

std::string percent_over(double ratio) {
  return fmt::format("{:+.1f} %", 100.0 * (ratio - 1.0));
}

double geometric_mean(double log_sum, size_t count) {
  return count == 0 ? 0.0 : std::exp(log_sum / static_cast<double>(count));
}

bool is_complete(const AttentionRow& row) {
  return std::ranges::all_of(row.cells, [](const auto& cell) { return cell.has_value(); });
}

bool repeats_any(const AttentionReport& report) {
  return std::ranges::any_of(report.rows, [](const auto& row) { return row.repeats_pages; });
}

std::string device_table(const AttentionReport& report) {
  std::string text = fmt::format("{:>6} {:>6} {:>8} {:>10}", "seqs", "q_len", "kv_len",
                                 report.phase == Phase::kDecode ? "MB" : "GFLOP");
  for (const std::string& name : report.backends) text += fmt::format(" {:>11}", name);
  text += fmt::format(" {:>9} {:>6}  {:<11} {:>7}\n", rate_unit(report), "peak", "auto", "off");
  for (const AttentionRow& row : report.rows) {
    text += fmt::format("{:>6} {:>6} {:>8} {:>9.1f}{}", row.num_seqs, row.q_len, row.max_kv_len,
                        row.work * (report.phase == Phase::kDecode ? 1e-6 : 1e-9),
                        row.repeats_pages ? '*' : ' ');
    for (const auto& cell : row.cells) {
      text += fmt::format(" {:>11}", cell ? fmt::format("{:.2f}", cell->graph_us) : "-");
    }
    if (const auto best = row.best()) {
      const double us = row.cells[*best]->graph_us;
      text += fmt::format(" {:>9.1f} {:>5.1f}%", rate(report, row.work, us),
                          100.0 * row.work / us / report.peak);
    } else {
      text += fmt::format(" {:>9} {:>6}", "-", "-");
    }
    const auto off = report.auto_over_best(row);
    text += fmt::format("  {:<11} {:>7}\n", row.auto_backend, off ? percent_over(*off) : "-");
  }
  if (repeats_any(report)) text += "* pages repeat, because distinct pages do not fit in memory\n";
  return text;
}

std::string event_table(const AttentionReport& report) {
  std::string text = fmt::format("{:>6} {:>6} {:>8} {:>10}", "seqs", "q_len", "kv_len", "");
  for (const std::string& name : report.backends) text += fmt::format(" {:>18}", name);
  text += "\n";
  for (const AttentionRow& row : report.rows) {
    text += fmt::format("{:>6} {:>6} {:>8} {:>10}", row.num_seqs, row.q_len, row.max_kv_len, "");
    for (const auto& cell : row.cells) {
      text += fmt::format(
          " {:>18}",
          cell ? fmt::format("{:.2f} +- {:.2f}", cell->event_us, cell->event_std_us) : "-");
    }
    text += "\n";
  }
  return text;
}

std::string summary_lines(const AttentionReport& report) {
  const AttentionSummary summary = summarize(report);
  std::string text = "geometric mean, us:";
  for (size_t i = 0; i < report.backends.size(); ++i) {
    text += fmt::format(" {} {:.2f},", report.backends[i], summary.geomean_us[i]);
  }
  text += fmt::format(" auto {:.2f}, best of each row {:.2f}", summary.auto_us, summary.best_us);
  if (summary.num_rows < report.rows.size()) {
    text += fmt::format("; over the {} of {} rows that all of them serve", summary.num_rows,
                        report.rows.size());
  }
  text += "\n";
  if (summary.worst == nullptr) return text;
  const AttentionRow& worst = *summary.worst;
  return text +
         fmt::format(
             "largest loss of auto: {} at {} x {} of {}, where it selects {} and {} is best\n",
             percent_over(*report.auto_over_best(worst)), worst.num_seqs, worst.q_len,
             worst.max_kv_len, worst.auto_backend, report.backends[*worst.best()]);
}

void write_cell(JsonWriter& json, const AttentionCell& cell) {
  json.begin_object();
  json.field("graph_us", cell.graph_us);
  json.field("event_us", cell.event_us);
  json.field("event_std_us", cell.event_std_us);
  json.end_object();
}

void write_row(JsonWriter& json, const AttentionReport& report, const AttentionRow& row) {
  json.begin_object();
  json.field("num_seqs", row.num_seqs);
  json.field("max_seq_len", row.max_kv_len);
  json.field("q_len", row.q_len);
  json.field(report.phase == Phase::kDecode ? "kv_bytes" : "operations", row.work);
  json.field("repeats_pages", row.repeats_pages);
  json.key("backends");
  json.begin_object();
  for (size_t i = 0; i < row.cells.size(); ++i) {
    if (!row.cells[i]) continue;
    json.key(report.backends[i]);
    write_cell(json, *row.cells[i]);
  }
  json.end_object();
  if (const auto best = row.best()) {
    const double us = row.cells[*best]->graph_us;
    json.field("best", std::string_view(report.backends[*best]));
    json.field(rate_column(report), rate(report, row.work, us));
    json.field("best_share_of_peak", row.work / us / report.peak);
  }
  json.field("auto", std::string_view(row.auto_backend));
  if (const auto off = report.auto_over_best(row)) json.field("auto_over_best", *off);
  json.end_object();
}

void write_report_summary(JsonWriter& json, const AttentionReport& report) {
  const AttentionSummary summary = summarize(report);
  json.begin_object();
  json.field("num_rows", summary.num_rows);
  json.key("geomean_us");
  json.begin_object();
  for (size_t i = 0; i < report.backends.size(); ++i) {
    json.field(report.backends[i], summary.geomean_us[i]);
  }
  json.field("auto", summary.auto_us);
  json.field("best", summary.best_us);
  json.end_object();
  if (summary.worst != nullptr) {
    json.field("worst_auto_over_best", *report.auto_over_best(*summary.worst));
  }
  json.end_object();
}

}  // namespace

std::optional<size_t> AttentionRow::best() const {
  std::optional<size_t> best;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] && (!best || cells[i]->graph_us < cells[*best]->graph_us)) best = i;
  }
  return best;
}

std::optional<double> AttentionRow::graph_us(std::string_view backend,
                                             const std::vector<std::string>& backends) const {
  for (size_t i = 0; i < cells.size(); ++i) {
    if (backends[i] == backend && cells[i]) return cells[i]->graph_us;
  }
  return std::nullopt;
}

std::optional<double> AttentionReport::auto_over_best(const AttentionRow& row) const {
  const auto us = row.graph_us(row.auto_backend, backends);
  if (!us) return std::nullopt;
  return *us / row.cells[*row.best()]->graph_us;
}

AttentionSummary summarize(const AttentionReport& report) {
  AttentionSummary summary;
  std::vector<double> logs(report.backends.size(), 0.0);
  double auto_log = 0.0;
  double best_log = 0.0;
  double worst = 0.0;
  for (const AttentionRow& row : report.rows) {
    const auto off = report.auto_over_best(row);
    if (off && *off > worst) {
      worst = *off;
      summary.worst = &row;
    }
    if (!off || !is_complete(row)) continue;
    ++summary.num_rows;
    for (size_t i = 0; i < logs.size(); ++i) logs[i] += std::log(row.cells[i]->graph_us);
    const double best = std::log(row.cells[*row.best()]->graph_us);
    best_log += best;
    auto_log += best + std::log(*off);
  }
  for (const double log : logs) {
    summary.geomean_us.push_back(geometric_mean(log, summary.num_rows));
  }
  summary.auto_us = geometric_mean(auto_log, summary.num_rows);
  summary.best_us = geometric_mean(best_log, summary.num_rows);
  return summary;
}

std::string to_table(const AttentionReport& report) {
  return fmt::format(
      "{}: {}, grid {}\n\nmicroseconds per call on the device (CUDA graph); of the best: {} and "
      "share of the peak ({:g} {}); off: time of auto over the best\n{}\nmicroseconds by CUDA "
      "events around "
      "the host's call, mean +- standard deviation\n{}\n{}",
      report.device, report.shape, report.grid, rate_unit(report), rate(report, report.peak, 1.0),
      rate_unit(report), device_table(report), event_table(report), summary_lines(report));
}

std::string to_csv(const AttentionReport& report) {
  std::string csv = fmt::format("# {}: {}, grid {}\n", report.device, report.shape, report.grid);
  csv += fmt::format("num_seqs,max_seq_len,q_len,{},repeats_pages",
                     report.phase == Phase::kDecode ? "kv_MB" : "GFLOP");
  for (const std::string& name : report.backends) {
    csv += fmt::format(",{0}_event_us,{0}_event_std_us,{0}_graph_us", name);
  }
  csv += fmt::format(",best,best_graph_us,{},best_share_of_peak,auto,auto_over_best\n",
                     rate_column(report));
  for (const AttentionRow& row : report.rows) {
    csv += fmt::format("{},{},{},{:.2f},{}", row.num_seqs, row.max_kv_len, row.q_len,
                       row.work * (report.phase == Phase::kDecode ? 1e-6 : 1e-9),
                       row.repeats_pages ? 1 : 0);
    for (const auto& cell : row.cells) {
      csv += cell ? fmt::format(",{:.2f},{:.2f},{:.3f}", cell->event_us, cell->event_std_us,
                                cell->graph_us)
                  : std::string(",,,");
    }
    if (const auto best = row.best()) {
      const double us = row.cells[*best]->graph_us;
      csv += fmt::format(",{},{:.3f},{:.1f},{:.4f}", report.backends[*best], us,
                         rate(report, row.work, us), row.work / us / report.peak);
    } else {
      csv += ",,,,";
    }
    const auto off = report.auto_over_best(row);
    csv += fmt::format(",{},{}\n", row.auto_backend, off ? fmt::format("{:.4f}", *off) : "");
  }
  return csv;
}

std::string to_json(const AttentionReport& report) {
  JsonWriter json;
  json.begin_object();
  json.field("device", std::string_view(report.device));
  json.field("shape", std::string_view(report.shape));
  json.field("grid", std::string_view(report.grid));
  json.field("phase", phase_name(report.phase));
  json.field("peak", rate(report, report.peak, 1.0));
  json.key("rows");
  json.begin_array();
  for (const AttentionRow& row : report.rows) write_row(json, report, row);
  json.end_array();
  json.key("summary");
  write_report_summary(json, report);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::bench
