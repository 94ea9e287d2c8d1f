// Counters, gauges and histograms, and Prometheus' text of them. Names and buckets are vLLM's where
// vLLM has the metric, so that its dashboards work unchanged.
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

// Cumulative when written, as Prometheus wants it. observe() is a search and two atomic adds.
class Histogram {
 public:
  // Upper bounds, ascending; beyond the last is +Inf.
  explicit Histogram(std::span<const double> bounds);
  void observe(double value);

  std::span<const double> bounds() const { return bounds_; }
  // Of bounds() and of +Inf, each with those below it.
  std::vector<int64_t> cumulative_counts() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  std::span<const double> bounds_;
  std::vector<std::atomic<int64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// "name{key="value"}" and HELP and TYPE lines, each family once.
class MetricsText {
 public:
  explicit MetricsText(std::string_view model) : model_(model) {}

  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;
  void family(std::string_view name, std::string_view type, std::string_view help);
  // Of the family begun last; every sample has the label model_name.
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
