#include "server/metrics/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace quire::server {
namespace {

std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

std::string number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? fmt::format("{}", whole) : fmt::format("{}", value);
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(bounds.size() + 1) {}

void Histogram::observe(double value) {
  const auto at = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<size_t>(at)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<int64_t> Histogram::cumulative_counts() const {
  std::vector<int64_t> counts;
  int64_t total = 0;
  for (const std::atomic<int64_t>& count : counts_) {
    counts.push_back(total += count.load(std::memory_order_relaxed));
  }
  return counts;
}

void MetricsText::family(std::string_view name, std::string_view type, std::string_view help) {
  family_ = name;
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::sample(double value, const Labels& labels, std::string_view suffix) {
  fmt::format_to(std::back_inserter(text_), "{}{}{{model_name=\"{}\"", family_, suffix,
                 escaped(model_));
  for (const auto& [key, label] : labels) {
    fmt::format_to(std::back_inserter(text_), ",{}=\"{}\"", key, escaped(label));
  }
  fmt::format_to(std::back_inserter(text_), "}} {}\n", number(value));
}

void MetricsText::counter(std::string_view name, std::string_view help, int64_t value) {
  family(name, "counter", help);
  sample(static_cast<double>(value));
}

void MetricsText::gauge(std::string_view name, std::string_view help, double value) {
  family(name, "gauge", help);
  sample(value);
}

void MetricsText::histogram(std::string_view name, std::string_view help,
                            const Histogram& histogram) {
  family(name, "histogram", help);
  const std::vector<int64_t> counts = histogram.cumulative_counts();
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool is_last = i == histogram.bounds().size();
    const std::string bound = is_last ? "+Inf" : number(histogram.bounds()[i]);
    sample(static_cast<double>(counts[i]), {{"le", bound}}, "_bucket");
  }
  sample(static_cast<double>(counts.back()), {}, "_count");
  sample(histogram.sum(), {}, "_sum");
}

}  // namespace quire::server
