// The metrics of the server and its engine: counters, gauges, histograms, and their Prometheus text
// for /metrics. Metrics that vLLM has too use its names and buckets, so that its dashboards work
// unchanged.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/machine.h"
#include "grammar/grammar_compiler.h"
#include "quire/engine.h"
#include "server/http/server.h"

namespace quire::server {

class Counter {
 public:
  void add(int64_t count = 1) { count_.fetch_add(count, std::memory_order_relaxed); }
  int64_t value() const { return count_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> count_ = 0;
};

// Counts per bucket; the text form is cumulative, as Prometheus requires. observe() costs one
// binary search and two atomic additions.
class Histogram {
 public:
  // `bounds` are the upper bounds in ascending order; one more bucket, +Inf, follows the last.
  explicit Histogram(std::span<const double> bounds);
  void observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  // Returns one count per bound and one for +Inf; each includes all smaller values.
  std::vector<int64_t> cumulative_counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::span<const double> bounds_;
  std::vector<std::atomic<int64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// The value of a label as it stands between quotes.
std::string escape_label(std::string_view value);

// Writes the Prometheus text format: HELP and TYPE lines once per family, then lines of the form
// name{key="value"}.
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // Every later sample has these labels too. The texts must outlive the writer.
  void set_common_labels(Labels labels) { common_labels_ = std::move(labels); }
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Adds a sample to the latest family.
  void sample(double value, const Labels& labels = {}, std::string_view suffix = "");
  void counter(std::string_view name, std::string_view help, int64_t value);
  void gauge(std::string_view name, std::string_view help, double value);
  // Adds the samples of a histogram to the latest family.
  void buckets(const Histogram& histogram);

  std::string take() { return std::move(text_); }

 private:
  Labels common_labels_;
  std::string family_;
  std::string text_;
};

// Requests that have not reached the engine yet.
struct WaitingStats {
  int num_for_grammars = 0;
  size_t num_for_workers = 0;
  GrammarStats grammars = {};
};

// Upper bounds of the histograms' buckets, the same as vLLM's.
inline constexpr double kFirstTokenBounds[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                               0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                               20,    40,    80,   160,  640,  2560};
inline constexpr double kInterTokenBounds[] = {
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
    0.4,    0.5,   0.75,   1,     2.5,  5,     7.5,  10,    20,  40,   80};
inline constexpr double kRequestBounds[] = {0.05, 0.1, 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,
                                            15,   20,  30,  40,  50,  60, 120, 240, 480, 960, 1920};
inline constexpr double kTokenCountBounds[] = {1,    2,    5,    10,  20,  50,  100, 200, 500,
                                               1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 2e5};
inline constexpr double kSequenceCountBounds[] = {1, 2, 5, 10, 20};

// The facts and counters of other components that /metrics shows.
struct MetricsSources {
  std::string_view model_name;
  std::string_view version;
  const ModelInfo& model;
  std::vector<EngineStats> engines;  // by replica
  http::ServerStats http;
  WaitingStats waiting;
  ProcessUse process;
};

// Observations about the requests of one replica.
struct EngineMetrics {
  Histogram time_to_first_token{kFirstTokenBounds};  // seconds
  Histogram inter_token_latency{kInterTokenBounds};  // seconds
  Histogram e2e_request_latency{kRequestBounds};     // seconds
  Histogram queue_time{kRequestBounds};  // seconds: per sequence, from arrival to its first step
  Histogram prefill_time{
      kRequestBounds};  // seconds: per sequence, from its first step to its first token
  Histogram decode_time{kRequestBounds};  // seconds: per sequence, from its first token to its last
  Histogram inference_time{kRequestBounds};            // seconds: prefill_time + decode_time
  Histogram num_prompt_tokens{kTokenCountBounds};      // per request
  Histogram num_generation_tokens{kTokenCountBounds};  // per sequence
  Histogram max_generation_tokens{kTokenCountBounds};  // per request, of its longest sequence
  Histogram params_n{kSequenceCountBounds};            // per request
  Histogram params_max_tokens{kTokenCountBounds};      // per request

  void count_finish(FinishReason reason) { ends[static_cast<size_t>(reason)].add(); }
  static constexpr size_t kNumFinishReasons = static_cast<size_t>(FinishReason::kError) + 1;
  std::array<Counter, kNumFinishReasons> ends;  // of sequences, by FinishReason
};

class ServerMetrics {
 public:
  explicit ServerMetrics(size_t num_replicas = 1) : engines_(num_replicas) {}
  EngineMetrics& of(int replica) { return engines_.at(static_cast<size_t>(replica)); }

  void count_response(int http_status);
  Counter num_cancelled;  // requests whose clients disconnected

  // Without engines, leaves out their families; with an empty model_name, leaves out that label.
  std::string text(const MetricsSources& sources) const;

 private:
  void write_responses(MetricsText& out) const;

  std::vector<EngineMetrics> engines_;  // by replica
  std::array<Counter, 600> responses_;  // by HTTP status
};

}  // namespace quire::server
