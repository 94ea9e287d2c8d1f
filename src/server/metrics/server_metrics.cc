#include "server/metrics/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "server/openai/response_fields.h"

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

void ServerMetrics::count_response(int http_status) {
  if (http_status >= 0 && http_status < static_cast<int>(responses_.size())) {
    responses_[static_cast<size_t>(http_status)].add();
  }
}

std::string ServerMetrics::text(std::string_view model_name, const EngineStats& engine,
                                const http::ServerStats& http, const WaitingStats& waiting) const {
  MetricsText out(model_name);
  out.gauge("vllm:num_requests_running", "Sequences in the running batch.", engine.num_running);
  out.gauge("vllm:num_requests_waiting", "Sequences that wait to be scheduled.",
            engine.num_waiting);
  out.gauge("vllm:kv_cache_usage_perc", "Fraction of the KV cache blocks in use (0 to 1).",
            engine.kv_cache_usage);
  out.counter("vllm:num_preemptions_total",
              "Preemptions: running sequences that lost their KV blocks and are recomputed later.",
              engine.num_preemptions);
  out.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", engine.num_prompt_tokens);
  out.counter("vllm:generation_tokens_total", "Tokens generated.", engine.num_generated_tokens);
  out.counter("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.",
              engine.prefix_cache_queries);
  out.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
              engine.prefix_cache_hits);
  out.family("vllm:request_success_total", "counter", "Sequences that ended, by finish reason.");
  for (size_t i = 0; i < success_.size(); ++i) {
    const auto reason = openai_finish_reason(static_cast<FinishReason>(i));
    out.sample(static_cast<double>(success_[i].value()), {{"finished_reason", reason}});
  }
  out.histogram("vllm:time_to_first_token_seconds",
                "Time from a request's arrival to the first token of a sequence.",
                time_to_first_token);
  out.histogram("vllm:inter_token_latency_seconds", "Time between two tokens of a sequence.",
                inter_token_latency);
  out.histogram("vllm:e2e_request_latency_seconds",
                "Time from a request's arrival to the last token of a sequence.",
                e2e_request_latency);
  out.histogram("vllm:request_queue_time_seconds",
                "Time from a request's arrival to the first step of a sequence.", queue_time);
  out.histogram("vllm:request_prefill_time_seconds",
                "Time from a sequence's first step to its first token.", prefill_time);
  out.histogram("vllm:request_decode_time_seconds",
                "Time from a sequence's first token to its last.", decode_time);
  out.histogram("vllm:request_inference_time_seconds",
                "Time from a sequence's first step to its last token.", inference_time);
  out.histogram("vllm:request_prompt_tokens", "Prompt tokens per sequence.", num_prompt_tokens);
  out.histogram("vllm:request_generation_tokens", "Generated tokens per sequence.",
                num_generation_tokens);
  out.histogram("vllm:request_max_num_generation_tokens",
                "Generated tokens of a prompt's longest sequence.", max_generation_tokens);
  out.histogram("vllm:request_params_n", "Sequences per prompt that requests ask for (n).",
                params_n);
  out.histogram("vllm:request_params_max_tokens",
                "Generated tokens per sequence that requests allow (max_tokens).",
                params_max_tokens);

  out.counter("quire:steps_total", "Engine steps.", engine.num_steps);
  out.counter("quire:device_to_host_copies_total",
              "Copies from the device to the host; one per step on a GPU, none on a CPU.",
              engine.num_device_to_host_copies);
  out.counter("quire:device_waits_total",
              "Waits of the host for the device; one per step on a GPU, none on a CPU.",
              engine.num_device_waits);
  out.gauge("quire:kv_blocks", "KV cache blocks.", engine.num_total_blocks);
  out.gauge("quire:kv_blocks_free", "KV cache blocks that are free.", engine.num_free_blocks);
  out.counter("quire:requests_cancelled_total",
              "Requests whose client disconnected before the response was complete.",
              num_cancelled.value());
  out.gauge("quire:grammar_queue", "Requests that wait for their grammar to be compiled.",
            waiting.num_for_grammars);
  out.gauge("quire:worker_queue",
            "Tasks that wait for a worker thread: requests to parse and outputs to write.",
            static_cast<double>(waiting.num_for_workers));
  const GrammarStats& grammars = waiting.grammars;
  out.counter("quire:grammars_compiled_total", "Grammars compiled, including those refused.",
              grammars.num_compiled);
  out.counter("quire:grammar_cache_hits_total", "Requests whose grammar was found in the cache.",
              grammars.num_hits);
  out.gauge("quire:grammar_bytes",
            "Bytes of memory of compiled grammars and of the sequences that they constrain.",
            static_cast<double>(grammars.held_bytes));
  out.gauge("quire:http_connections", "Open HTTP connections.", http.num_open);
  out.counter("quire:http_connections_total", "HTTP connections accepted.", http.num_accepted);
  out.counter("quire:http_connections_refused_total",
              "HTTP connections refused because a connection limit was reached.", http.num_refused);
  out.counter("quire:http_timeouts_total", "HTTP connections closed by a timeout.",
              http.num_timeouts);
  out.counter("quire:http_slow_readers_total", "Streams closed because the client read too slowly.",
              http.num_slow_readers);
  out.counter("quire:http_bad_requests_total",
              "Requests refused because they were malformed or exceeded an HTTP limit.",
              http.num_bad_requests);
  out.family("quire:http_responses_total", "counter", "HTTP responses by status code.");
  for (size_t status = 0; status < responses_.size(); ++status) {
    const int64_t count = responses_[status].value();
    if (count == 0) continue;
    out.sample(static_cast<double>(count), {{"code", std::to_string(status)}});
  }
  return out.take();
}

}  // namespace quire::server
