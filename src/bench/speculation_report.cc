#include "bench/speculation_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace quire::bench {
namespace {

constexpr std::string_view kPerPosition = "vllm:spec_decode_num_accepted_tokens_per_pos_total";

// A sample of Prometheus's text format: NAME{LABELS} VALUE, where the labels may be absent.
struct Sample {
  std::string_view name;
  std::string_view labels;
  double value = 0;
};

// Returns a sample without a name for comments and for anything else that is not a counter.
Sample parse_sample(std::string_view line) {
  Sample sample;
  const size_t name_end = line.find_first_of("{ ");
  const size_t value_start = line.rfind(' ');
  if (line.starts_with('#') || value_start == std::string_view::npos) return sample;
  double value = 0;
  const char* const end = line.data() + line.size();
  const auto parsed = std::from_chars(line.data() + value_start + 1, end, value);
  if (parsed.ec != std::errc() || !(value >= 0 && value < 1e15)) return sample;
  sample.name = line.substr(0, name_end);
  sample.labels = line.substr(name_end, value_start - name_end);
  sample.value = value;
  return sample;
}

// The value of the label `position`; kMaxPositions if it is absent or beyond the positions that are
// reported.
size_t position_of(std::string_view labels) {
  constexpr std::string_view kLabel = "position=\"";
  constexpr size_t kNone = SpeculationStats::kMaxPositions;
  const size_t start = labels.find(kLabel);
  if (start == std::string_view::npos) return kNone;
  size_t position = 0;
  const auto parsed = std::from_chars(labels.data() + start + kLabel.size(),
                                      labels.data() + labels.size(), position);
  return parsed.ec == std::errc() ? std::min(position, kNone) : kNone;
}

// Returns false for other metrics.
bool add_sample(const Sample& sample, MeasuredSpeculation& sum) {
  const int64_t count = std::llround(sample.value);
  if (sample.name == "vllm:spec_decode_num_drafts_total") {
    sum.stats.num_spans += count;
  } else if (sample.name == "vllm:spec_decode_num_draft_tokens_total") {
    sum.stats.num_drafts += count;
  } else if (sample.name == "vllm:spec_decode_num_accepted_tokens_total") {
    sum.stats.num_accepted += count;
  } else if (sample.name == kPerPosition) {
    const size_t position = position_of(sample.labels);
    if (position < sum.stats.accepted_by_position.size()) {
      sum.stats.accepted_by_position[position] += count;
    }
  } else if (sample.name == "quire_spec_decode_draft_seconds_total") {
    sum.stats.draft_seconds += sample.value;
  } else if (sample.name == "quire_spec_decode_verify_seconds_total") {
    sum.stats.verify_seconds += sample.value;
  } else if (sample.name == "quire_spec_decode_synthetic_acceptance") {
    sum.has_synthetic_acceptance |= sample.value > 0;
  } else {
    return false;
  }
  return true;
}

// The number of tokens per step and sequence.
double mean_accepted_length(const SpeculationStats& stats) {
  if (stats.num_spans == 0) return 1;
  return 1 + static_cast<double>(stats.num_accepted) / static_cast<double>(stats.num_spans);
}

// For each position in a group of drafts, the share of the groups whose draft at that position was
// accepted.
std::vector<double> acceptance_by_position(const SpeculationStats& stats) {
  std::vector<double> shares;
  if (stats.num_spans == 0) return shares;
  for (const int64_t accepted : stats.accepted_by_position) {
    if (accepted == 0 && !shares.empty()) break;
    shares.push_back(static_cast<double>(accepted) / static_cast<double>(stats.num_spans));
  }
  return shares;
}

// The number of groups may be negative, because the server may have restarted during the
// measurement.
bool has_figures(const SpeculationStats& stats) {
  return stats.num_spans > 0 || (stats.num_spans == 0 && stats.draft_seconds > 0);
}

// Only Quire's servers report the times, and an engine on a GPU without a drafter does not measure
// them.
bool has_times(const SpeculationStats& stats) {
  return stats.draft_seconds > 0 || stats.verify_seconds > 0;
}

std::string times_part(const SpeculationStats& stats) {
  if (!has_times(stats)) return "";
  return fmt::format("; drafter {:.3f} s, model and sampling {:.3f} s", stats.draft_seconds,
                     stats.verify_seconds);
}

}  // namespace

std::optional<MeasuredSpeculation> parse_speculation(std::string_view metrics) {
  MeasuredSpeculation sum;
  bool has_any = false;
  while (!metrics.empty()) {
    const size_t end = std::min(metrics.find('\n'), metrics.size());
    has_any |= add_sample(parse_sample(metrics.substr(0, end)), sum);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
  }
  if (!has_any) return std::nullopt;
  return sum;
}

void add(SpeculationStats& stats, const SpeculationStats& other, int64_t factor) {
  stats.num_spans += factor * other.num_spans;
  stats.num_drafts += factor * other.num_drafts;
  stats.num_accepted += factor * other.num_accepted;
  for (size_t i = 0; i < stats.accepted_by_position.size(); ++i) {
    stats.accepted_by_position[i] += factor * other.accepted_by_position[i];
  }
  stats.verify_seconds += static_cast<double>(factor) * other.verify_seconds;
  stats.draft_seconds += static_cast<double>(factor) * other.draft_seconds;
}

std::string draft_line(const MeasuredSpeculation& speculation) {
  const SpeculationStats& stats = speculation.stats;
  if (!has_figures(stats)) return "";
  if (stats.num_spans == 0) {
    return fmt::format("Drafts: none was verified{}\n", times_part(stats));
  }
  return fmt::format(
      "Drafts{}: {} of {} accepted; mean accepted length {:.2f}; by position {:.2f}{}\n",
      speculation.has_synthetic_acceptance ? " (synthetic acceptance: the outputs have no meaning)"
                                           : "",
      stats.num_accepted, stats.num_drafts, mean_accepted_length(stats),
      fmt::join(acceptance_by_position(stats), " "), times_part(stats));
}

void write_speculation(JsonWriter& json, const MeasuredSpeculation& speculation) {
  const SpeculationStats& stats = speculation.stats;
  if (!has_figures(stats)) return;
  json.key("speculation");
  json.begin_object();
  json.field("synthetic_acceptance", speculation.has_synthetic_acceptance);
  json.field("num_drafts", stats.num_spans);
  json.field("num_draft_tokens", stats.num_drafts);
  json.field("num_accepted_tokens", stats.num_accepted);
  json.field("mean_accepted_length", mean_accepted_length(stats));
  if (has_times(stats)) {
    json.field("draft_seconds", stats.draft_seconds);
    json.field("verify_seconds", stats.verify_seconds);
  }
  json.key("acceptance_by_position");
  json.begin_array();
  for (const double share : acceptance_by_position(stats)) json.value(share);
  json.end_array();
  json.end_object();
}

}  // namespace quire::bench
