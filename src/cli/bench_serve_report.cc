#include "cli/bench_serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/flags.h"
#include "cli/output.h"
#include "cli/statistics.h"

namespace quire::cli {
namespace {

struct KindNames {
  std::string_view name;
  std::string_view title;
  std::string_view label;
};

const KindNames& names_of(LatencyKind kind) {
  static constexpr KindNames kNames[] = {
      {"ttft", "Time to First Token", "TTFT"},
      {"tpot", "Time per Output Token (excl. 1st token)", "TPOT"},
      {"itl", "Inter-token Latency", "ITL"},
      {"e2el", "End-to-end Latency", "E2EL"}};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<LatencyKind> kind_named(std::string_view name) {
  for (const LatencyKind kind : kLatencyKinds) {
    if (latency_name(kind) == name) return kind;
  }
  return std::nullopt;
}

// Splits a list at commas and spaces, without empty parts.
std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t size = std::min(text.find_first_of(", "), text.size());
    if (size > 0) parts.push_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return parts;
}

// TPOT of a single token is 0, as in vLLM's goodput.
double latency_ms(const ServedAnswer& answer, LatencyKind kind) {
  if (kind == LatencyKind::kTtft) return answer.first_token_s * 1e3;
  if (kind == LatencyKind::kE2el) return answer.latency_s * 1e3;
  if (answer.num_output_tokens < 2) return 0.0;
  return (answer.latency_s - answer.first_token_s) * 1e3 /
         static_cast<double>(answer.num_output_tokens - 1);
}

bool is_good(const ServedAnswer& answer, std::span<const Goodput> limits) {
  return std::all_of(limits.begin(), limits.end(), [&](const Goodput& limit) {
    return latency_ms(answer, limit.kind) <= limit.limit_ms;
  });
}

void add_answer(const ServedAnswer& answer, ServeResult& result) {
  ++result.num_completed;
  result.num_prompt_tokens += answer.num_prompt_tokens;
  result.num_output_tokens += answer.num_output_tokens;
  auto& latencies = result.latencies_ms;
  latencies[LatencyKind::kTtft].push_back(latency_ms(answer, LatencyKind::kTtft));
  latencies[LatencyKind::kE2el].push_back(latency_ms(answer, LatencyKind::kE2el));
  if (answer.num_output_tokens > 1) {
    latencies[LatencyKind::kTpot].push_back(latency_ms(answer, LatencyKind::kTpot));
  }
  for (const double gap : answer.inter_token_s) {
    latencies[LatencyKind::kItl].push_back(gap * 1e3);
  }
}

// Counts each chunk of text as one token, in the second in which it arrived.
double peak_tokens_per_s(std::span<const ServedAnswer> answers, double duration_s) {
  std::vector<int64_t> seconds(static_cast<size_t>(std::max(duration_s, 0.0)) + 1);
  const auto count = [&](double when) {
    ++seconds[std::min(static_cast<size_t>(std::max(when, 0.0)), seconds.size() - 1)];
  };
  for (const ServedAnswer& answer : answers) {
    if (answer.end != ServedAnswer::End::kOk || answer.num_output_tokens == 0) continue;
    double when = answer.sent_s + answer.first_token_s;
    count(when);
    for (const double gap : answer.inter_token_s) count(when += gap);
  }
  return static_cast<double>(*std::max_element(seconds.begin(), seconds.end()));
}

std::string percent_text(double percent) {
  return fmt::format("{}", percent);  // 99, 99.9
}

void print_title(std::string_view title, char fill) {
  print_stdout("{}\n", fmt::format(fmt::runtime(fmt::format("{{:{}^50}}", fill)), title));
}

template <typename T>
void print_line(std::string_view label, const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    print_stdout("{:<40} {:<10.2f}\n", label, value);
  } else {
    print_stdout("{:<40} {:<10}\n", label, value);
  }
}

void print_latencies(const ServeResult& result, LatencyKind kind, const ReportConfig& config) {
  const auto found = result.latencies_ms.find(kind);
  const std::vector<double> none;
  const std::vector<double>& values = found == result.latencies_ms.end() ? none : found->second;
  const KindNames& names = names_of(kind);
  print_title(names.title, '-');
  print_line(fmt::format("Mean {} (ms):", names.label), mean(values));
  print_line(fmt::format("Median {} (ms):", names.label), percentile(values, 50));
  for (const double percent : config.percents) {
    print_line(fmt::format("P{} {} (ms):", percent_text(percent), names.label),
               percentile(values, percent));
  }
}

}  // namespace

std::string_view latency_name(LatencyKind kind) {
  return names_of(kind).name;
}

Result<std::vector<LatencyKind>> parse_latency_kinds(std::string_view text) {
  std::vector<LatencyKind> kinds;
  for (const std::string_view part : split_list(text)) {
    const auto kind = kind_named(part);
    if (!kind) return unexpected(text, "some of ttft, tpot, itl, e2el, parted by commas");
    kinds.push_back(*kind);
  }
  return kinds;
}

Result<std::vector<double>> parse_percents(std::string_view text) {
  std::vector<double> percents;
  for (const std::string_view part : split_list(text)) {
    const auto percent = parse_number(part, {.min = 0, .max = 100});
    if (!percent.ok()) return unexpected(text, "numbers in [0, 100], parted by commas");
    percents.push_back(*percent);
  }
  return percents;
}

Result<std::vector<Goodput>> parse_goodput(std::string_view text) {
  std::vector<Goodput> limits;
  for (const std::string_view part : split_list(text)) {
    const size_t colon = std::min(part.find(':'), part.size());
    const auto kind = kind_named(part.substr(0, colon));
    const auto limit = parse_number(part.substr(std::min(colon + 1, part.size())), {.min = 0});
    if (!kind || *kind == LatencyKind::kItl || !limit.ok()) {
      return unexpected(text, "limits in ms of ttft, tpot or e2el, such as ttft:200,tpot:50");
    }
    limits.push_back({*kind, *limit});
  }
  return limits;
}

ServeResult summarize(std::span<const ServedAnswer> answers, double duration_s,
                      std::span<const Goodput> limits) {
  ServeResult result;
  result.duration_s = duration_s;
  result.num_requests = answers.size();
  result.peak_output_tokens_per_s = peak_tokens_per_s(answers, duration_s);
  if (!limits.empty()) result.num_good = 0;
  for (const ServedAnswer& answer : answers) {
    if (answer.end == ServedAnswer::End::kFailed) {
      ++result.num_failed;
      ++result.errors[answer.error_kind];
    }
    if (answer.end != ServedAnswer::End::kOk) continue;
    add_answer(answer, result);
    if (result.num_good && is_good(answer, limits)) ++*result.num_good;
  }
  return result;
}

void print_report(const ServeResult& result, const ReportConfig& config) {
  const auto num_tokens = [&](int64_t count) { return result.per_s(static_cast<double>(count)); };
  print_title(" Serving Benchmark Result ", '=');
  print_line("Successful requests:", result.num_completed);
  print_line("Failed requests:", result.num_failed);
  print_line("Benchmark duration (s):", result.duration_s);
  print_line("Total input tokens:", result.num_prompt_tokens);
  print_line("Total generated tokens:", result.num_output_tokens);
  print_line("Request throughput (req/s):", num_tokens(static_cast<int64_t>(result.num_completed)));
  if (result.num_good) {
    print_line("Request goodput (req/s):", num_tokens(static_cast<int64_t>(*result.num_good)));
  }
  print_line("Output token throughput (tok/s):", num_tokens(result.num_output_tokens));
  print_line("Peak output token throughput (tok/s):", result.peak_output_tokens_per_s);
  print_line("Peak concurrent requests:", result.peak_concurrent);
  print_line("Total token throughput (tok/s):",
             num_tokens(result.num_prompt_tokens + result.num_output_tokens));
  print_line("Client CPU (% of a core):", 100 * result.client_cpu_share());
  for (const LatencyKind kind : config.kinds) print_latencies(result, kind, config);
  print_stdout("{:=^50}\n", "");
}

void write_report(JsonWriter& json, const ServeResult& result, const ReportConfig& config) {
  const auto rate = [&](int64_t count) { return result.per_s(static_cast<double>(count)); };
  json.field("duration", result.duration_s);
  json.field("num_prompts", result.num_requests);
  json.field("completed", result.num_completed);
  json.field("failed", result.num_failed);
  json.field("total_input_tokens", result.num_prompt_tokens);
  json.field("total_output_tokens", result.num_output_tokens);
  json.field("request_throughput", rate(static_cast<int64_t>(result.num_completed)));
  json.key("request_goodput");
  if (result.num_good) {
    json.value(rate(static_cast<int64_t>(*result.num_good)));
  } else {
    json.null();
  }
  json.field("output_throughput", rate(result.num_output_tokens));
  json.field("total_token_throughput", rate(result.num_prompt_tokens + result.num_output_tokens));
  json.field("max_output_tokens_per_s", result.peak_output_tokens_per_s);
  json.field("max_concurrent_requests", result.peak_concurrent);
  json.field("client_cpu_s", result.client_cpu_s);
  for (const auto& [kind, values] : result.latencies_ms) {
    const std::string_view name = latency_name(kind);
    json.field(fmt::format("mean_{}_ms", name), mean(values));
    json.field(fmt::format("median_{}_ms", name), percentile(values, 50));
    json.field(fmt::format("std_{}_ms", name), standard_deviation(values));
    for (const double percent : config.percents) {
      json.field(fmt::format("p{}_{}_ms", percent_text(percent), name),
                 percentile(values, percent));
    }
  }
  json.key("errors");
  json.begin_object();
  for (const auto& [kind, count] : result.errors) json.field(kind, count);
  json.end_object();
}

}  // namespace quire::cli
