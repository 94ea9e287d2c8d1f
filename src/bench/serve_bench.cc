#include "bench/serve_bench.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/text.h"

namespace quire::bench {
namespace {

constexpr size_t kMaxInfoBytes = size_t{16} << 20;
constexpr size_t kNumErrorsShown = 3;
constexpr std::chrono::seconds kMetricsTimeout(5);
constexpr double kBusyShare = 0.9;  // of one core: beyond it the client itself may limit the result
constexpr std::string_view kChat = "/v1/chat/completions";

Result<std::unique_ptr<http_client::Client>> connect(const ServeBenchOptions& options) {
  http_client::ClientConfig config;
  if (options.base_url.empty()) {
    config.url.host = options.host;
    config.url.port = options.port;
  } else {
    QUIRE_ASSIGN_OR_RETURN(config.url, http_client::parse_url(options.base_url));
  }
  config.unix_socket_path = options.uds;
  config.verify_peer = !options.insecure;
  config.max_idle_connections = SIZE_MAX;
  if (!options.api_key.empty()) {
    config.headers.emplace_back("Authorization", "Bearer " + options.api_key);
  }
  return http_client::Client::create(std::move(config));
}

// Requests facts from the server before the benchmark starts.
class ServerInfoClient {
 public:
  ServerInfoClient(http_client::Client& client, const Hooks& hooks)
      : client_(client), hooks_(hooks) {}

  Result<std::string> first_model() {
    QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, ask({.target = "/v1/models"}));
    std::string_view name;
    if (document.root()["data"].at(0)["id"].get_string().get(name)) {
      return not_found("[bench] /v1/models lists no model; set `model`");
    }
    return std::string(name);
  }

  Result<int> vocab_size() {
    const auto document = ask({.target = "/tokenizer_info"});
    if (document.status().code() == StatusCode::kCancelled) return document.status();
    int64_t size = 0;
    if (!document.ok() || document->root()["vocab_size"].get_int64().get(size) || size < 1 ||
        size > INT32_MAX) {
      return not_found(
          "[bench] the server does not report the size of its vocabulary (/tokenizer_info); set "
          "`vocab_size`, or `random_prompts` to words");
    }
    return static_cast<int>(size);
  }

  // Returns nullopt if the server has no counters of speculation or does not send them at once.
  std::optional<MeasuredSpeculation> speculation() {
    const auto deadline = std::chrono::steady_clock::now() + kMetricsTimeout;
    const auto metrics = http_client::fetch(client_, {.target = "/metrics"}, kMaxInfoBytes, [&] {
      return std::chrono::steady_clock::now() > deadline;
    });
    if (!metrics.ok() || metrics->status != 200) return std::nullopt;
    return parse_speculation(metrics->body);
  }

  // Counts tokens with POST /tokenize. On a server without that route, assumes four bytes per token
  // and warns.
  Result<int> count_tokens(std::string_view text, std::string_view model) {
    const int estimate = static_cast<int>((text.size() + 3) / 4);
    if (!has_tokenize_) return estimate;
    JsonWriter json;
    json.begin_object();
    json.field("model", model);
    json.field("prompt", text);
    json.end_object();
    int status = 0;
    const auto document =
        ask({.method = "POST", .target = "/tokenize", .body = json.text()}, &status);
    has_tokenize_ = status != 404 && status != 405 && status != 501;
    if (!has_tokenize_) {
      log_warning("[bench] the server has no /tokenize; lengths are estimated");
      return estimate;
    }
    QUIRE_RETURN_IF_ERROR(document.status());
    int64_t count = 0;
    if (document->root()["count"].get_int64().get(count) || count < 0 || count >= INT32_MAX) {
      return not_found("[bench] the response of /tokenize has no field 'count'");
    }
    return static_cast<int>(count);
  }

 private:
  Result<JsonDocument> ask(http_client::Request request, int* http_status = nullptr) {
    const std::string target = request.target;
    QUIRE_ASSIGN_OR_RETURN(
        const http_client::Response response,
        http_client::fetch(client_, std::move(request), kMaxInfoBytes, hooks_.interrupted));
    if (http_status != nullptr) *http_status = response.status;
    if (response.status != 200) {
      return not_found(fmt::format("[bench] {} returned HTTP {}: {}", target, response.status,
                                   one_line(std::string_view(response.body).substr(0, 200))));
    }
    return JsonDocument::parse(response.body, "the response of " + target);
  }

  http_client::Client& client_;
  const Hooks& hooks_;
  bool has_tokenize_ = true;
};

Result<std::vector<DatasetRequest>> dataset_requests(ServerInfoClient& server,
                                                     const ServeBenchOptions& options,
                                                     const std::string& model) {
  const ServerQueries queries = {
      .vocab_size =
          [&] {
            return options.vocab_size > 0 ? Result<int>(options.vocab_size) : server.vocab_size();
          },
      .count_tokens = [&](std::string_view text) { return server.count_tokens(text, model); }};
  ServeDatasetConfig config = options.dataset;
  config.wants_text = options.random_prompts == "words" || options.endpoint == kChat;
  return make_requests(config, queries);
}

std::vector<TimedRequest> timed_requests(const ServeBenchOptions& options, const std::string& model,
                                         const std::vector<DatasetRequest>& dataset) {
  const RequestConfig config = {.model = model,
                                .is_chat = options.endpoint == kChat,
                                .ignore_eos = options.ignore_eos,
                                .temperature = options.temperature};
  ArrivalConfig arrivals = options.arrivals;
  arrivals.seed = options.dataset.seed;
  const std::vector<double> times = arrival_times(arrivals, static_cast<int>(dataset.size()));
  std::vector<TimedRequest> requests;
  const bool has_rate = std::isfinite(arrivals.request_rate);
  for (const DatasetRequest& request : dataset) {
    const double drawn_s = times[requests.size()];
    requests.push_back({.body = request_body(request, config),
                        .due_s = has_rate ? drawn_s : request.arrival_s.value_or(drawn_s),
                        .output_len = request.output_len});
  }
  return requests;
}

// Warms up as vLLM does: sends the first prompt num_warmups times.
Status warm_up(http_client::Client& client, const ServeBenchOptions& options,
               const LoadConfig& config, const TimedRequest& first, const Hooks& hooks) {
  const std::vector<TimedRequest> requests(
      static_cast<size_t>(options.num_warmups),
      TimedRequest{.body = first.body, .output_len = first.output_len});
  if (requests.empty()) return {};
  const LoadResult result = run_load(client, requests, config, {.interrupted = hooks.interrupted});
  if (hooks.interrupted()) return cancelled("[bench] interrupted during the warm-up");
  for (const ServedResponse& response : result.responses) {
    if (response.end == ServedResponse::End::kOk) continue;
    return unavailable(fmt::format("[bench] a warm-up request failed: {}: {}", response.error_kind,
                                   one_line(response.error_message)));
  }
  return {};
}

std::vector<std::string> remarks_on(const ServeResult& result,
                                    const std::vector<ServedResponse>& responses) {
  std::vector<std::string> lines;
  for (const auto& [kind, count] : result.errors) {
    lines.push_back(fmt::format("{} requests failed: {}", count, kind));
    size_t num_shown = 0;
    for (const ServedResponse& response : responses) {
      if (response.error_kind != kind || num_shown == kNumErrorsShown) continue;
      ++num_shown;
      lines.push_back("  " + one_line(response.error_message));
    }
  }
  if (result.client_cpu_share() > kBusyShare) {
    lines.push_back(
        fmt::format("the client used {:.0f} % of a core, which may have limited the measured rates",
                    100 * result.client_cpu_share()));
  }
  return lines;
}

}  // namespace

Status check_server(const ServeBenchOptions& options) {
  const bool has_address =
      options.host != ServeBenchOptions().host || options.port != ServeBenchOptions().port;
  if (has_address && (!options.base_url.empty() || !options.uds.empty())) {
    return invalid_argument("[bench] expected `base_url` or `uds`, or `host` and `port`, not both");
  }
  if (options.api_key.find_first_of("\r\n") != std::string::npos) {
    return invalid_argument("[bench] the API key has several lines; expected one");
  }
  if (options.base_url.empty()) return {};
  return http_client::parse_url(options.base_url).status();
}

Result<ServeBenchResult> measure_server(const ServeBenchOptions& options, const Hooks& hooks) {
  QUIRE_RETURN_IF_ERROR(check_server(options));
  raise_descriptor_limit();  // each stream needs one
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<http_client::Client> client, connect(options));
  ServerInfoClient server(*client, hooks);
  ServeBenchResult bench;
  bench.model = options.model;
  if (bench.model.empty()) {
    QUIRE_ASSIGN_OR_RETURN(bench.model, server.first_model());
  }
  QUIRE_ASSIGN_OR_RETURN(const auto dataset, dataset_requests(server, options, bench.model));
  const std::vector<TimedRequest> requests = timed_requests(options, bench.model, dataset);
  const LoadConfig config = {.target = options.endpoint,
                             .max_concurrency = options.max_concurrency};
  QUIRE_RETURN_IF_ERROR(warm_up(*client, options, config, requests.front(), hooks));
  const auto drafts_before = server.speculation();
  const LoadResult load = run_load(*client, requests, config, hooks);
  const auto drafts_after = server.speculation();
  ServeResult& result = bench.result;
  result = summarize(load.responses, load.duration_s, options.goodput);
  result.peak_concurrent = load.peak_concurrent;
  result.client_cpu_s = load.cpu_s;
  if (drafts_before && drafts_after) {
    result.speculation = *drafts_after;
    add(result.speculation.stats, drafts_before->stats, -1);
  }
  bench.remarks = remarks_on(result, load.responses);
  if (hooks.interrupted()) {
    bench.end = cancelled(fmt::format("[bench] interrupted after {} of {} requests",
                                      result.num_completed + result.num_failed, requests.size()));
  }
  return bench;
}

std::string to_json(const ServeBenchResult& result, const ServeBenchOptions& options) {
  JsonWriter json;
  json.begin_object();
  json.field("endpoint", options.endpoint);
  json.field("model_id", result.model);
  json.field("dataset_name", options.dataset.dataset_name);
  json.key("request_rate");
  if (std::isinf(options.arrivals.request_rate)) {
    json.value("inf");
  } else {
    json.value(options.arrivals.request_rate);
  }
  json.field("burstiness", options.arrivals.burstiness);
  json.key("max_concurrency");
  if (options.max_concurrency > 0) {
    json.value(options.max_concurrency);
  } else {
    json.null();
  }
  json.field("interrupted", !result.end.ok());
  write_report(json, result.result, options.report);
  json.end_object();
  return json.text() + "\n";
}

}  // namespace quire::bench
