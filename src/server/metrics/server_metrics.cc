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

// vLLM numbers its engines, one per data-parallel rank. This server has one.
constexpr std::string_view kEngineIndex = "0";

// The metrics that Prometheus's own client libraries add, without labels, and the build's version.
void write_process(const MetricsSources& sources, MetricsText& out) {
  const ProcessUse& use = sources.process;
  out.family("process_cpu_seconds_total", "counter", "User and system CPU time in seconds.");
  out.sample(use.cpu_seconds);
  out.gauge("process_resident_memory_bytes", "Resident memory in bytes.",
            static_cast<double>(use.resident_bytes));
  out.gauge("process_virtual_memory_bytes", "Virtual memory in bytes.",
            static_cast<double>(use.virtual_bytes));
  out.gauge("process_open_fds", "Open file descriptors.", static_cast<double>(use.num_open_fds));
  out.gauge("process_max_fds", "Largest number of open file descriptors.",
            static_cast<double>(use.max_fds));
  out.gauge("process_start_time_seconds", "When the process started, since the epoch.",
            use.started_at);
  out.family("quire_build_info", "gauge", "The build of this server, as labels.");
  out.sample(1, {{"version", sources.version}});
}

// vLLM's names. The mean accepted length is 1 + accepted tokens / drafts.
void write_speculation(const MetricsSources& sources, MetricsText& out) {
  const SpeculationStats& stats = sources.engine.speculation;
  out.gauge(
      "quire_spec_decode_synthetic_acceptance",
      "1 if drafts are accepted at given rates for a measurement, so that the outputs have no "
      "meaning.",
      sources.model.has_synthetic_acceptance ? 1 : 0);
  out.counter("vllm:spec_decode_num_drafts_total",
              "Groups of draft tokens verified: those of one sequence in one step.",
              stats.num_spans);
  out.counter("vllm:spec_decode_num_draft_tokens_total", "Draft tokens verified.",
              stats.num_drafts);
  out.counter("vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted.",
              stats.num_accepted);
  out.family("vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
             "Draft tokens accepted, by position within their group.");
  for (int i = 0; i < sources.model.num_speculative_tokens; ++i) {
    const std::string position = std::to_string(i);
    out.sample(static_cast<double>(stats.accepted_by_position[static_cast<size_t>(i)]),
               {{"position", position}});
  }
  out.family("quire_spec_decode_draft_seconds_total", "counter", "Time of the drafter.");
  out.sample(stats.draft_seconds);
  out.family("quire_spec_decode_verify_seconds_total", "counter",
             "Time of the model and of sampling.");
  out.sample(stats.verify_seconds);
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
  text_.append(family_).append(suffix);
  char before = '{';
  const auto add = [&](const Labels& some) {
    for (const auto& [key, label] : some) {
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", before, key, escaped(label));
      before = ',';
    }
  };
  add(common_labels_);
  add(labels);
  if (before == ',') text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}\n", number(value));
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

// vLLM's names, labels and buckets.
void ServerMetrics::write_vllm(const MetricsSources& sources, MetricsText& out) const {
  const EngineStats& engine = sources.engine;
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
  if (sources.model.num_speculative_tokens > 0) write_speculation(sources, out);
  out.family("vllm:request_success_total", "counter", "Sequences that ended, by finish reason.");
  for (size_t i = 0; i < success_.size(); ++i) {
    const auto reason = openai_finish_reason(static_cast<FinishReason>(i));
    out.sample(static_cast<double>(success_[i].value()), {{"finished_reason", reason}});
  }
  out.family("vllm:cache_config_info", "gauge", "The KV cache's configuration, as labels.");
  const std::string block_size = std::to_string(sources.model.block_size);
  const std::string num_blocks = std::to_string(engine.num_total_blocks);
  out.sample(1, {{"block_size", block_size},
                 {"cache_dtype", sources.model.kv_cache_dtype},
                 {"num_gpu_blocks", num_blocks}});
}

void ServerMetrics::write_histograms(MetricsText& out) const {
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
}

void ServerMetrics::write_engine(const MetricsSources& sources, MetricsText& out) const {
  const EngineStats& engine = sources.engine;
  out.counter("quire_steps_total", "Engine steps.", engine.num_steps);
  out.counter("quire_device_to_host_copies_total",
              "Copies from the device to the host; one per step on a GPU, none on a CPU.",
              engine.num_device_to_host_copies);
  out.counter("quire_device_waits_total",
              "Waits of the host for the device; one per step on a GPU, none on a CPU.",
              engine.num_device_waits);
  out.gauge("quire_kv_blocks", "KV cache blocks.", engine.num_total_blocks);
  out.gauge("quire_kv_blocks_free", "KV cache blocks that are free.", engine.num_free_blocks);
  out.family("quire_prefix_cache_misses_total", "counter",
             "Sequences whose prompt the prefix cache did not have whole, by reason.");
  for (size_t i = 0; i < engine.cache_misses.size(); ++i) {
    const auto miss = static_cast<CacheMiss>(i);
    if (miss == CacheMiss::kNone) continue;
    out.sample(static_cast<double>(engine.cache_misses[i]), {{"reason", cache_miss_name(miss)}});
  }
  out.counter("quire_kv_event_batches_dropped_total",
              "Batches of KV events that were not published because the queue was full.",
              engine.num_kv_batches_dropped);
  out.counter("quire_requests_cancelled_total",
              "Requests whose client disconnected before the response was complete.",
              num_cancelled.value());
  out.gauge("quire_grammar_queue", "Requests that wait for their grammar to be compiled.",
            sources.waiting.num_for_grammars);
  out.gauge("quire_worker_queue",
            "Tasks that wait for a worker thread: requests to parse and outputs to write.",
            static_cast<double>(sources.waiting.num_for_workers));
  const GrammarStats& grammars = sources.waiting.grammars;
  out.counter("quire_grammars_compiled_total", "Grammars compiled, including those refused.",
              grammars.num_compiled);
  out.counter("quire_grammar_cache_hits_total", "Requests whose grammar was found in the cache.",
              grammars.num_hits);
  out.gauge("quire_grammar_bytes",
            "Bytes of memory of compiled grammars and of the sequences that they constrain.",
            static_cast<double>(grammars.held_bytes));
}

void ServerMetrics::write_http(const http::ServerStats& http, MetricsText& out) const {
  out.gauge("quire_http_connections", "Open HTTP connections.", http.num_open);
  out.gauge("quire_http_body_bytes", "Bytes of memory that request bodies hold.",
            static_cast<double>(http.body_bytes));
  out.gauge("quire_http_response_bytes",
            "Bytes of memory that responses hold until they are sent; small ones are not counted.",
            static_cast<double>(http.response_bytes));
  out.counter("quire_http_connections_total", "HTTP connections accepted.", http.num_accepted);
  out.counter("quire_http_connections_refused_total",
              "HTTP connections refused beyond --max-connections or --max-connections-per-peer.",
              http.num_refused);
  out.counter("quire_http_received_bytes_total", "Bytes received, without TLS's own.",
              http.received_bytes);
  out.counter("quire_http_sent_bytes_total", "Bytes sent, without TLS's own.", http.sent_bytes);
  out.counter("quire_http_timeouts_total", "HTTP connections closed by a timeout.",
              http.num_timeouts);
  out.counter("quire_http_slow_readers_total", "Streams closed because the client read too slowly.",
              http.num_slow_readers);
  out.counter("quire_http_bad_requests_total",
              "Requests refused because they were malformed or exceeded an HTTP limit.",
              http.num_bad_requests);
  out.family("quire_http_responses_total", "counter", "HTTP responses by status code.");
  for (size_t status = 0; status < responses_.size(); ++status) {
    const int64_t count = responses_[status].value();
    if (count == 0) continue;
    out.sample(static_cast<double>(count), {{"code", std::to_string(status)}});
  }
}

std::string ServerMetrics::text(const MetricsSources& sources) const {
  MetricsText out;
  out.set_common_labels({{"model_name", sources.model_name}, {"engine", kEngineIndex}});
  write_vllm(sources, out);
  write_histograms(out);
  write_engine(sources, out);
  write_http(sources.http, out);
  out.set_common_labels({});
  write_process(sources, out);
  return out.take();
}

}  // namespace quire::server
