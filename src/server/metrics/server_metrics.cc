#include "server/metrics/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "server/openai/response_fields.h"

namespace quire::server {

std::string escape_label(std::string_view value) {
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

namespace {

std::string number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? fmt::format("{}", whole) : fmt::format("{}", value);
}

// Python's spelling, as in vLLM's labels.
std::string_view truth(bool value) {
  return value ? "True" : "False";
}

// Writes the families that have samples of every engine, with the engine's index as a label. vLLM
// numbers its engines in the same way, one per data-parallel rank.
class EngineFamilies {
 public:
  EngineFamilies(std::string_view model_name, size_t num_engines, MetricsText& out)
      : model_name_(model_name), out_(out) {
    for (size_t i = 0; i < num_engines; ++i) indices_.push_back(std::to_string(i));
  }

  // write(i) adds the samples of engine i.
  template <typename Write>
  void add(std::string_view name, std::string_view type, std::string_view help, Write write) {
    out_.family(name, type, help);
    for (size_t i = 0; i < indices_.size(); ++i) {
      out_.set_common_labels({{"model_name", model_name_}, {"engine", indices_[i]}});
      write(i);
    }
  }
  // value(i) returns the value of engine i.
  template <typename Value>
  void counter(std::string_view name, std::string_view help, Value value) {
    add(name, "counter", help, [&](size_t i) { out_.sample(static_cast<double>(value(i))); });
  }
  template <typename Value>
  void gauge(std::string_view name, std::string_view help, Value value) {
    add(name, "gauge", help, [&](size_t i) { out_.sample(static_cast<double>(value(i))); });
  }

 private:
  std::string_view model_name_;
  std::vector<std::string> indices_;
  MetricsText& out_;
};

// The metrics that Prometheus's own client libraries add, without labels, and the build's version.
void write_process(const ProcessUse& use, std::string_view version, MetricsText& out) {
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
  out.sample(1, {{"version", version}});
}

// vLLM's names. The mean accepted length is 1 + accepted tokens / drafts.
void write_speculation(const MetricsSources& sources, EngineFamilies& families, MetricsText& out) {
  const auto stats = [&](size_t i) -> const SpeculationStats& {
    return sources.engines[i].speculation;
  };
  families.gauge(
      "quire_spec_decode_synthetic_acceptance",
      "1 if drafts are accepted at given rates for a measurement, so that the outputs have no "
      "meaning.",
      [&](size_t) { return sources.model.has_synthetic_acceptance ? 1 : 0; });
  families.counter("vllm:spec_decode_num_drafts_total",
                   "Groups of draft tokens verified: those of one sequence in one step.",
                   [&](size_t i) { return stats(i).num_spans; });
  families.counter("vllm:spec_decode_num_draft_tokens_total", "Draft tokens verified.",
                   [&](size_t i) { return stats(i).num_drafts; });
  families.counter("vllm:spec_decode_num_accepted_tokens_total", "Draft tokens accepted.",
                   [&](size_t i) { return stats(i).num_accepted; });
  families.add("vllm:spec_decode_num_accepted_tokens_per_pos_total", "counter",
               "Draft tokens accepted, by position within their group.", [&](size_t i) {
                 for (int at = 0; at < sources.model.num_speculative_tokens; ++at) {
                   const std::string position = std::to_string(at);
                   const int64_t count = stats(i).accepted_by_position[static_cast<size_t>(at)];
                   out.sample(static_cast<double>(count), {{"position", position}});
                 }
               });
  families.counter("quire_spec_decode_draft_seconds_total", "Time of the drafter.",
                   [&](size_t i) { return stats(i).draft_seconds; });
  families.counter("quire_spec_decode_verify_seconds_total", "Time of the model and of sampling.",
                   [&](size_t i) { return stats(i).verify_seconds; });
}

// Writes the configuration of the KV cache, with vLLM's labels where Quire has the same setting.
void write_cache_config(const MetricsSources& sources, EngineFamilies& families, MetricsText& out) {
  const ModelInfo& model = sources.model;
  const std::string block_size = std::to_string(model.block_size);
  const std::string utilization = fmt::format("{}", model.gpu_memory_utilization);
  families.add("vllm:cache_config_info", "gauge", "The KV cache's configuration, as labels.",
               [&](size_t i) {
                 const std::string num_blocks = std::to_string(sources.engines[i].num_total_blocks);
                 out.sample(1, {{"block_size", block_size},
                                {"cache_dtype", model.kv_cache_dtype},
                                {"calculate_kv_scales", truth(model.calculate_kv_scales)},
                                {"enable_prefix_caching", truth(model.enable_prefix_caching)},
                                {"gpu_memory_utilization", utilization},
                                {"num_gpu_blocks", num_blocks}});
               });
}

// vLLM's names, labels and buckets.
void write_vllm(const MetricsSources& sources, std::span<const EngineMetrics> metrics,
                EngineFamilies& families, MetricsText& out) {
  const std::vector<EngineStats>& engines = sources.engines;
  families.gauge("vllm:num_requests_running", "Sequences in the running batch.",
                 [&](size_t i) { return engines[i].num_running; });
  families.gauge("vllm:num_requests_waiting", "Sequences that wait to be scheduled.",
                 [&](size_t i) { return engines[i].num_waiting; });
  families.gauge("vllm:kv_cache_usage_perc", "Fraction of the KV cache blocks in use (0 to 1).",
                 [&](size_t i) { return engines[i].kv_cache_usage; });
  families.counter(
      "vllm:num_preemptions_total",
      "Preemptions: running sequences that lost their KV blocks and are recomputed later.",
      [&](size_t i) { return engines[i].num_preemptions; });
  families.counter("vllm:prompt_tokens_total", "Prompt tokens processed.",
                   [&](size_t i) { return engines[i].num_prompt_tokens; });
  families.counter("vllm:generation_tokens_total", "Tokens generated.",
                   [&](size_t i) { return engines[i].num_generated_tokens; });
  families.counter("vllm:prefix_cache_queries_total",
                   "Prompt tokens looked up in the prefix cache.",
                   [&](size_t i) { return engines[i].prefix_cache_queries; });
  families.counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.",
                   [&](size_t i) { return engines[i].prefix_cache_hits; });
  if (sources.model.num_speculative_tokens > 0) write_speculation(sources, families, out);
  families.add("vllm:request_success_total", "counter", "Sequences that ended, by finish reason.",
               [&](size_t i) {
                 for (size_t reason = 0; reason < metrics[i].ends.size(); ++reason) {
                   out.sample(static_cast<double>(metrics[i].ends[reason].value()),
                              {{"finished_reason",
                                openai_finish_reason(static_cast<FinishReason>(reason))}});
                 }
               });
  write_cache_config(sources, families, out);
}

void write_histograms(std::span<const EngineMetrics> metrics, EngineFamilies& families,
                      MetricsText& out) {
  const auto write = [&](std::string_view name, std::string_view help,
                         Histogram EngineMetrics::*histogram) {
    families.add(name, "histogram", help, [&](size_t i) { out.buckets(metrics[i].*histogram); });
  };
  write("vllm:time_to_first_token_seconds",
        "Time from a request's arrival to the first token of a sequence.",
        &EngineMetrics::time_to_first_token);
  write("vllm:inter_token_latency_seconds", "Time between two tokens of a sequence.",
        &EngineMetrics::inter_token_latency);
  write("vllm:e2e_request_latency_seconds",
        "Time from a request's arrival to the last token of a sequence.",
        &EngineMetrics::e2e_request_latency);
  write("vllm:request_queue_time_seconds",
        "Time from a request's arrival to the first step of a sequence.",
        &EngineMetrics::queue_time);
  write("vllm:request_prefill_time_seconds",
        "Time from a sequence's first step to its first token.", &EngineMetrics::prefill_time);
  write("vllm:request_decode_time_seconds", "Time from a sequence's first token to its last.",
        &EngineMetrics::decode_time);
  write("vllm:request_inference_time_seconds",
        "Time from a sequence's first step to its last token.", &EngineMetrics::inference_time);
  write("vllm:request_prompt_tokens", "Prompt tokens per sequence.",
        &EngineMetrics::num_prompt_tokens);
  write("vllm:request_generation_tokens", "Generated tokens per sequence.",
        &EngineMetrics::num_generation_tokens);
  write("vllm:request_max_num_generation_tokens",
        "Generated tokens of a prompt's longest sequence.", &EngineMetrics::max_generation_tokens);
  write("vllm:request_params_n", "Sequences per prompt that requests ask for (n).",
        &EngineMetrics::params_n);
  write("vllm:request_params_max_tokens",
        "Generated tokens per sequence that requests allow (max_tokens).",
        &EngineMetrics::params_max_tokens);
}

// Quire's own metrics of the engines.
void write_engines(const std::vector<EngineStats>& engines, EngineFamilies& families,
                   MetricsText& out) {
  families.counter("quire_steps_total", "Engine steps.",
                   [&](size_t i) { return engines[i].num_steps; });
  families.counter("quire_device_to_host_copies_total",
                   "Copies from the device to the host; one per step on a GPU, none on a CPU.",
                   [&](size_t i) { return engines[i].num_device_to_host_copies; });
  families.counter("quire_device_waits_total",
                   "Waits of the host for the device; one per step on a GPU, none on a CPU.",
                   [&](size_t i) { return engines[i].num_device_waits; });
  families.gauge("quire_kv_blocks", "KV cache blocks.",
                 [&](size_t i) { return engines[i].num_total_blocks; });
  families.gauge("quire_kv_blocks_free", "KV cache blocks that are free.",
                 [&](size_t i) { return engines[i].num_free_blocks; });
  families.add("quire_prefix_cache_misses_total", "counter",
               "Sequences whose prompt the prefix cache did not have whole, by cause.",
               [&](size_t i) {
                 for (size_t k = 0; k < engines[i].cache_misses.size(); ++k) {
                   const auto miss = static_cast<CacheMiss>(k);
                   if (miss == CacheMiss::kNone) continue;
                   out.sample(static_cast<double>(engines[i].cache_misses[k]),
                              {{"cause", cache_miss_name(miss)}});
                 }
               });
  families.counter("quire_kv_event_batches_dropped_total",
                   "Batches of KV events that were not published because the queue was full.",
                   [&](size_t i) { return engines[i].num_kv_batches_dropped; });
  families.gauge(
      "quire_outstanding_tokens",
      "Prompt tokens to compute and output tokens to expect; replicas are balanced by it.",
      [&](size_t i) { return engines[i].num_outstanding_tokens; });
}

void write_waiting(const WaitingStats& waiting, MetricsText& out) {
  out.gauge("quire_grammar_queue", "Requests that wait for their grammar to be compiled.",
            waiting.num_for_grammars);
  out.gauge("quire_worker_queue",
            "Tasks that wait for a worker thread: requests to parse and outputs to write.",
            static_cast<double>(waiting.num_for_workers));
  const GrammarStats& grammars = waiting.grammars;
  out.counter("quire_grammars_compiled_total", "Grammars compiled, including those refused.",
              grammars.num_compiled);
  out.counter("quire_grammar_cache_hits_total", "Requests whose grammar was found in the cache.",
              grammars.num_hits);
  out.gauge("quire_grammar_bytes",
            "Bytes of memory of compiled grammars and of the sequences that they constrain.",
            static_cast<double>(grammars.held_bytes));
}

void write_http(const http::ServerStats& http, MetricsText& out) {
  out.gauge("quire_http_open_connections", "Open HTTP connections.", http.num_open);
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
      fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", before, key, escape_label(label));
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

void MetricsText::buckets(const Histogram& histogram) {
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

std::string ServerMetrics::text(const MetricsSources& sources) const {
  MetricsText out;
  if (!sources.engines.empty()) {
    EngineFamilies families(sources.model_name, sources.engines.size(), out);
    write_vllm(sources, engines_, families, out);
    write_histograms(engines_, families, out);
    write_engines(sources.engines, families, out);
  }
  if (!sources.model_name.empty()) out.set_common_labels({{"model_name", sources.model_name}});
  if (!sources.engines.empty()) write_waiting(sources.waiting, out);
  write_http(sources.http, out);
  write_responses(out);
  out.set_common_labels({});
  write_process(sources.process, sources.version, out);
  return out.take();
}

void ServerMetrics::write_responses(MetricsText& out) const {
  out.counter("quire_requests_cancelled_total",
              "Requests whose client disconnected before the response was complete.",
              num_cancelled.value());
  out.family("quire_http_responses_total", "counter", "HTTP responses by status code.");
  for (size_t status = 0; status < responses_.size(); ++status) {
    const int64_t count = responses_[status].value();
    if (count == 0) continue;
    out.sample(static_cast<double>(count), {{"code", std::to_string(status)}});
  }
}

}  // namespace quire::server
