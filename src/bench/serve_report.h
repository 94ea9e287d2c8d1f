// The results of a load on a server, with vLLM's metrics, names and layout.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "bench/server_load.h"
#include "bench/speculation_report.h"

namespace quire::bench {

enum class LatencyKind { kTtft, kTpot, kItl, kE2el };
constexpr LatencyKind kLatencyKinds[] = {LatencyKind::kTtft, LatencyKind::kTpot, LatencyKind::kItl,
                                         LatencyKind::kE2el};

// The name used in flags and JSON, for example "ttft".
std::string_view latency_name(LatencyKind kind);
std::optional<LatencyKind> latency_kind(std::string_view name);

// A request counts as good if it meets every limit.
struct Goodput {
  LatencyKind kind;  // not kItl
  double limit_ms;
};

struct ServeResult {
  double duration_s = 0.0;
  size_t num_requests = 0;
  size_t num_completed = 0;
  size_t num_failed = 0;
  int64_t num_prompt_tokens = 0;  // of completed requests
  int64_t num_cached_tokens = 0;  // of these, taken from the server's prefix cache
  int64_t num_output_tokens = 0;
  int peak_concurrent = 0;
  double peak_output_tokens_per_s = 0.0;  // over the best whole second
  std::optional<size_t> num_good;         // only with limits
  std::map<LatencyKind, std::vector<double>> latencies_ms;
  std::map<std::string, size_t> errors;  // count by kind
  double client_cpu_s = 0.0;             // of this program, during the measurement
  MeasuredSpeculation speculation = {};  // of the server, also for other clients

  double per_s(double count) const { return duration_s > 0 ? count / duration_s : 0.0; }
  double client_cpu_share() const { return per_s(client_cpu_s); }  // of one core
};

// Leaves peak_concurrent, client_cpu_s and speculation for the caller to fill.
ServeResult summarize(std::span<const ServedResponse> responses, double duration_s,
                      std::span<const Goodput> limits);

struct ReportConfig {
  std::vector<LatencyKind> kinds;
  std::vector<double> percents;
};
std::string to_table(const ServeResult& result, const ReportConfig& config);
// Writes the fields into the JSON object that is open.
void write_report(JsonWriter& json, const ServeResult& result, const ReportConfig& config);

}  // namespace quire::bench
