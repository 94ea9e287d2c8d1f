// Counters, gauges and histograms, and their Prometheus text. Metrics that vLLM has too use its
// names and buckets, so that its dashboards work unchanged.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

// Writes the Prometheus text format: HELP and TYPE lines once per family, then lines of the form
// name{key="value"}.
class MetricsText {
 public:
  explicit MetricsText(std::string_view model) : model_(model) {}

  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Adds a sample to the latest family, with the label model_name.
  void sample(double value, const Labels& labels = {}, std::string_view suffix = "");
  void counter(std::string_view name, std::string_view help, int64_t value);
  void gauge(std::string_view name, std::string_view help, double value);
  void histogram(std::string_view name, std::string_view help, const Histogram& histogram);

  std::string take() { return std::move(text_); }

 private:
  std::string model_;
  std::string family_;
  std::string text_;
};

}  // namespace quire::server
