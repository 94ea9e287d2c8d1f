#include "bench/serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/measurement.h"

namespace quire::bench {
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

// TPOT of a single token is 0, as in vLLM's goodput.
double latency_ms(const ServedResponse& response, LatencyKind kind) {
  if (kind == LatencyKind::kTtft) return response.first_token_s * 1e3;
  if (kind == LatencyKind::kE2el) return response.latency_s * 1e3;
  if (response.num_output_tokens < 2) return 0.0;
  return (response.latency_s - response.first_token_s) * 1e3 /
         static_cast<double>(response.num_output_tokens - 1);
}

bool is_good(const ServedResponse& response, std::span<const Goodput> limits) {
  return std::all_of(limits.begin(), limits.end(), [&](const Goodput& limit) {
    return latency_ms(response, limit.kind) <= limit.limit_ms;
  });
}

void add_response(const ServedResponse& response, ServeResult& result) {
  ++result.num_completed;
  result.num_prompt_tokens += response.num_prompt_tokens;
  result.num_cached_tokens += response.num_cached_tokens;
  result.num_output_tokens += response.num_output_tokens;
  auto& latencies = result.latencies_ms;
  latencies[LatencyKind::kTtft].push_back(latency_ms(response, LatencyKind::kTtft));
  latencies[LatencyKind::kE2el].push_back(latency_ms(response, LatencyKind::kE2el));
  if (response.num_output_tokens > 1) {
    latencies[LatencyKind::kTpot].push_back(latency_ms(response, LatencyKind::kTpot));
  }
  for (const double gap : response.inter_token_s) {
    latencies[LatencyKind::kItl].push_back(gap * 1e3);
  }
}

// Counts each chunk of text as one token, in the second in which it arrived.
double peak_tokens_per_s(std::span<const ServedResponse> responses, double duration_s) {
  std::vector<int64_t> seconds(static_cast<size_t>(std::max(duration_s, 0.0)) + 1);
  const auto count = [&](double when) {
    ++seconds[std::min(static_cast<size_t>(std::max(when, 0.0)), seconds.size() - 1)];
  };
  for (const ServedResponse& response : responses) {
    if (response.end != ServedResponse::End::kOk || response.num_output_tokens == 0) continue;
    double when = response.sent_s + response.first_token_s;
    count(when);
    for (const double gap : response.inter_token_s) count(when += gap);
  }
  return static_cast<double>(*std::max_element(seconds.begin(), seconds.end()));
}

template <typename T>
std::string line(std::string_view label, const T& value) {
  if constexpr (std::is_floating_point_v<T>) {
    return fmt::format("{:<40} {:<10.2f}\n", label, value);
  } else {
    return fmt::format("{:<40} {:<10}\n", label, value);
  }
}

std::string latency_lines(const ServeResult& result, LatencyKind kind, const ReportConfig& config) {
  const auto found = result.latencies_ms.find(kind);
  const std::vector<double> none;
  const std::vector<double>& values = found == result.latencies_ms.end() ? none : found->second;
  const KindNames& names = names_of(kind);
  std::string text = fmt::format("{:-^50}\n", names.title);
  text += line(fmt::format("Mean {} (ms):", names.label), mean(values));
  text += line(fmt::format("Median {} (ms):", names.label), percentile(values, 50));
  for (const double percent : config.percents) {
    text += line(fmt::format("P{} {} (ms):", percent, names.label), percentile(values, percent));
  }
  return text;
}

}  // namespace

std::string_view latency_name(LatencyKind kind) {
  return names_of(kind).name;
}

std::optional<LatencyKind> latency_kind(std::string_view name) {
  for (const LatencyKind kind : kLatencyKinds) {
    if (latency_name(kind) == name) return kind;
  }
  return std::nullopt;
}

ServeResult summarize(std::span<const ServedResponse> responses, double duration_s,
                      std::span<const Goodput> limits) {
  ServeResult result;
  result.duration_s = duration_s;
  result.num_requests = responses.size();
  result.peak_output_tokens_per_s = peak_tokens_per_s(responses, duration_s);
  if (!limits.empty()) result.num_good = 0;
  for (const ServedResponse& response : responses) {
    if (response.end == ServedResponse::End::kFailed) {
      ++result.num_failed;
      ++result.errors[response.error_kind];
    }
    if (response.end != ServedResponse::End::kOk) continue;
    add_response(response, result);
    if (result.num_good && is_good(response, limits)) ++*result.num_good;
  }
  return result;
}

std::string to_table(const ServeResult& result, const ReportConfig& config) {
  const auto rate = [&](auto count) { return result.per_s(static_cast<double>(count)); };
  std::string text = fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  text += line("Successful requests:", result.num_completed);
  text += line("Failed requests:", result.num_failed);
  text += line("Benchmark duration (s):", result.duration_s);
  text += line("Total input tokens:", result.num_prompt_tokens);
  text += line("Cached input tokens:", result.num_cached_tokens);
  text += line("Total generated tokens:", result.num_output_tokens);
  text += line("Request throughput (req/s):", rate(result.num_completed));
  if (result.num_good) text += line("Request goodput (req/s):", rate(*result.num_good));
  text += line("Output token throughput (tok/s):", rate(result.num_output_tokens));
  text += line("Peak output token throughput (tok/s):", result.peak_output_tokens_per_s);
  text += line("Peak concurrent requests:", result.peak_concurrent);
  text += line("Total token throughput (tok/s):",
               rate(result.num_prompt_tokens + result.num_output_tokens));
  text += line("Client CPU (% of a core):", 100 * result.client_cpu_share());
  for (const LatencyKind kind : config.kinds) text += latency_lines(result, kind, config);
  return text + draft_line(result.speculation) + fmt::format("{:=^50}\n", "");
}

void write_report(JsonWriter& json, const ServeResult& result, const ReportConfig& config) {
  const auto rate = [&](auto count) { return result.per_s(static_cast<double>(count)); };
  json.field("duration", result.duration_s);
  json.field("num_prompts", result.num_requests);
  json.field("completed", result.num_completed);
  json.field("failed", result.num_failed);
  json.field("total_input_tokens", result.num_prompt_tokens);
  json.field("total_cached_input_tokens", result.num_cached_tokens);
  json.field("total_output_tokens", result.num_output_tokens);
  json.field("request_throughput", rate(result.num_completed));
  json.key("request_goodput");
  if (result.num_good) {
    json.value(rate(*result.num_good));
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
      json.field(fmt::format("p{}_{}_ms", percent, name), percentile(values, percent));
    }
  }
  write_speculation(json, result.speculation);
  json.key("errors");
  json.begin_object();
  for (const auto& [kind, count] : result.errors) json.field(kind, count);
  json.end_object();
}

}  // namespace quire::bench
