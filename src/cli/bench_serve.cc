#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/text.h"
#include "cli/bench_serve_arrivals.h"
#include "cli/bench_serve_load.h"
#include "cli/bench_serve_prompts.h"
#include "cli/bench_serve_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "http_client/client.h"

namespace quire::cli {
namespace {

constexpr size_t kMaxInfoBytes = size_t{16} << 20;
constexpr size_t kNumErrorsShown = 3;
constexpr double kBusyShare = 0.9;  // of one core: beyond it the client itself may limit the result
constexpr std::string_view kChat = "/v1/chat/completions";

struct Options {
  std::string base_url;
  std::string host = "127.0.0.1";
  int port = 8000;
  std::string uds;
  std::string endpoint = "/v1/completions";
  std::string model;
  std::string api_key;
  bool insecure = false;

  ServePromptConfig prompts;
  int vocab_size = 0;
  bool ignore_eos = false;
  double temperature = 0.0;

  ArrivalConfig arrivals{.request_rate = std::numeric_limits<double>::infinity()};
  bool has_rate = false;
  int max_concurrency = 0;
  int num_warmups = 0;

  std::vector<LatencyKind> kinds{std::begin(kLatencyKinds), std::end(kLatencyKinds)};
  std::vector<double> percents = {99};
  std::vector<Goodput> limits;
  std::string json;
};

Result<std::unique_ptr<http_client::Client>> connect(const Options& options) {
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
  const char* from_environment = std::getenv("OPENAI_API_KEY");
  const std::string key = !options.api_key.empty()      ? options.api_key
                          : from_environment != nullptr ? from_environment
                                                        : "";
  if (key.find_first_of("\r\n") != std::string::npos) {
    return invalid_argument("[bench] the API key; expected one line");
  }
  if (!key.empty()) config.headers.emplace_back("Authorization", "Bearer " + key);
  return http_client::Client::create(std::move(config));
}

// Raises the limit on file descriptors to its maximum, because each stream needs one.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<JsonDocument> ask(http_client::Client& client, http_client::Request request) {
  const std::string target = request.target;
  QUIRE_ASSIGN_OR_RETURN(
      const http_client::Response response,
      http_client::fetch(client, std::move(request), kMaxInfoBytes, CancelScope::interrupted));
  if (response.status != 200) {
    return not_found(fmt::format("[bench] {} answered HTTP {}: {}", target, response.status,
                                 one_line(std::string_view(response.body).substr(0, 200))));
  }
  return JsonDocument::parse(response.body, "the answer of " + target);
}

Result<std::string> first_model(http_client::Client& client) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, ask(client, {.target = "/v1/models"}));
  std::string_view name;
  if (document.root()["data"].at(0)["id"].get_string().get(name)) {
    return not_found("[bench] /v1/models names no model; set --model");
  }
  return std::string(name);
}

Result<int> vocab_size(http_client::Client& client, const Options& options) {
  if (options.vocab_size > 0) return options.vocab_size;
  const auto document = ask(client, {.target = "/tokenizer_info"});
  if (document.status().code() == StatusCode::kCancelled) return document.status();
  int64_t size = 0;
  if (!document.ok() || document->root()["vocab_size"].get_int64().get(size) || size < 1 ||
      size > INT32_MAX) {
    return not_found(
        "[bench] the server does not say how large its vocabulary is (/tokenizer_info); set "
        "--vocab-size, or --random-prompts words");
  }
  return static_cast<int>(size);
}

// Counts tokens with POST /tokenize. On a server without it, assumes four bytes per token and
// warns.
class TokenCounter {
 public:
  TokenCounter(http_client::Client& client, std::string model)
      : client_(client), model_(std::move(model)) {}

  Result<int> count(std::string_view text) {
    const int estimate = static_cast<int>((text.size() + 3) / 4);
    if (!has_route_) return estimate;
    JsonWriter json;
    json.begin_object();
    json.field("model", model_);
    json.field("prompt", text);
    json.end_object();
    const auto document =
        ask(client_, {.method = "POST", .target = "/tokenize", .body = json.text()});
    int64_t count = 0;
    if (document.ok() && !document->root()["count"].get_int64().get(count) && count >= 0 &&
        count < INT32_MAX) {
      return static_cast<int>(count);
    }
    const StatusCode code = document.status().code();
    if (code == StatusCode::kCancelled || code == StatusCode::kUnavailable) {
      return document.status();
    }
    has_route_ = false;
    print_stderr("quire bench serve: the server has no /tokenize; lengths are estimated\n");
    return estimate;
  }

 private:
  http_client::Client& client_;
  std::string model_;
  bool has_route_ = true;
};

Result<std::vector<ServePrompt>> prompts_for(http_client::Client& client, const Options& options,
                                             const std::string& model) {
  TokenCounter counter(client, model);
  const ServerFacts facts = {
      .vocab_size = [&] { return vocab_size(client, options); },
      .count_tokens = [&](std::string_view text) { return counter.count(text); }};
  ServePromptConfig config = options.prompts;
  config.wants_text |= options.endpoint == kChat;
  return make_prompts(config, facts);
}

std::vector<TimedCall> timed_calls(const Options& options, const std::string& model,
                                   const std::vector<ServePrompt>& prompts) {
  const CallConfig config = {.model = model,
                             .is_chat = options.endpoint == kChat,
                             .ignore_eos = options.ignore_eos,
                             .temperature = options.temperature};
  ArrivalConfig arrivals = options.arrivals;
  arrivals.seed = options.prompts.seed;
  const std::vector<double> times = arrival_times(arrivals, static_cast<int>(prompts.size()));
  std::vector<TimedCall> calls;
  for (const ServePrompt& prompt : prompts) {
    const double drawn_s = times[calls.size()];
    calls.push_back({.body = call_body(prompt, config),
                     .due_s = options.has_rate ? drawn_s : prompt.arrival_s.value_or(drawn_s)});
  }
  return calls;
}

// Warms up as vLLM does: sends the first prompt num_warmups times.
Status warm_up(http_client::Client& client, const Options& options, const LoadConfig& config,
               const TimedCall& first) {
  LoadConfig quiet = config;
  quiet.progress.clear();
  const std::vector<TimedCall> calls(static_cast<size_t>(options.num_warmups),
                                     TimedCall{.body = first.body});
  if (calls.empty()) return {};
  const LoadResult result = run_load(client, calls, quiet);
  if (CancelScope::interrupted()) return cancelled("[bench] interrupted while warming up");
  for (const ServedAnswer& answer : result.answers) {
    if (answer.end == ServedAnswer::End::kOk) continue;
    return unavailable(fmt::format("[bench] a warm-up request failed: {}: {}", answer.error_kind,
                                   one_line(answer.error_message)));
  }
  return {};
}

void print_errors(const ServeResult& result, const std::vector<ServedAnswer>& answers) {
  for (const auto& [kind, count] : result.errors) {
    print_stderr("quire bench serve: {} requests failed: {}\n", count, kind);
    size_t num_shown = 0;
    for (const ServedAnswer& answer : answers) {
      if (answer.error_kind != kind || num_shown == kNumErrorsShown) continue;
      ++num_shown;
      print_stderr("  {}\n", one_line(answer.error_message));
    }
  }
  if (result.client_cpu_share() > kBusyShare) {
    print_stderr(
        "quire bench serve: the client used {:.0f} % of a core and may have slowed what "
        "it measures\n",
        100 * result.client_cpu_share());
  }
}

std::string json_report(const Options& options, const std::string& model,
                        const ServeResult& result) {
  JsonWriter json;
  json.begin_object();
  json.field("endpoint", options.endpoint);
  json.field("model_id", model);
  json.field("dataset_name", options.prompts.dataset_name);
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
  write_report(json, result, {options.kinds, options.percents});
  json.end_object();
  return json.text() + "\n";
}

Result<int> run(const Options& options) {
  raise_descriptor_limit();
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<http_client::Client> client, connect(options));
  std::string model = options.model;
  if (model.empty()) {
    QUIRE_ASSIGN_OR_RETURN(model, first_model(*client));
  }
  QUIRE_ASSIGN_OR_RETURN(const auto prompts, prompts_for(*client, options, model));
  const std::vector<TimedCall> calls = timed_calls(options, model, prompts);
  const LoadConfig config = {.target = options.endpoint,
                             .max_concurrency = options.max_concurrency,
                             .progress = "serve",
                             .interrupted = CancelScope::interrupted};
  QUIRE_RETURN_IF_ERROR(warm_up(*client, options, config, calls.front()));
  const LoadResult load = run_load(*client, calls, config);
  ServeResult result = summarize(load.answers, load.duration_s, options.limits);
  result.peak_concurrent = load.peak_concurrent;
  result.client_cpu_s = load.cpu_s;
  print_report(result, {options.kinds, options.percents});
  print_errors(result, load.answers);
  if (!options.json.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.json, json_report(options, model, result)));
  }
  if (CancelScope::interrupted()) {
    return cancelled(fmt::format("[bench] interrupted after {} of {} requests",
                                 result.num_completed + result.num_failed, calls.size()));
  }
  return result.num_completed > 0 ? kExitOk : kExitFailure;
}

Status check(const Options& options) {
  const bool is_random = options.prompts.dataset_name == "random";
  if (is_random != options.prompts.dataset_path.empty()) {
    return invalid_argument(
        "expected --dataset-path FILE with --dataset-name sharegpt or trace only");
  }
  if (!options.endpoint.starts_with('/')) {
    return unexpected(options.endpoint, "--endpoint with a path such as /v1/completions");
  }
  return {};
}

// Parses a flag's value into `target`.
template <typename T, typename Parse>
std::function<Status(std::string_view)> parsed_into(T* target, Parse parse) {
  return [target, parse](std::string_view value) -> Status {
    QUIRE_ASSIGN_OR_RETURN(*target, parse(value));
    return {};
  };
}

void add_server_flags(FlagSet& flags, Options* options) {
  flags.begin_group("Server");
  flags.text("--base-url", "URL", &options->base_url,
             "http://HOST:PORT or https://HOST:PORT, instead of --host and --port");
  flags.text("--host", "HOST", &options->host, "The server's host");
  flags.number("--port", &options->port, {.min = 1, .max = 65535}, "The server's port");
  flags.file("--uds", &options->uds, "The server's Unix socket, instead of --host and --port");
  flags.choice("--endpoint", {"/v1/completions", std::string(kChat)}, &options->endpoint,
               "What to call");
  flags.text("--model", "NAME", &options->model,
             "The model's name; without it, the first of /v1/models");
  flags.text("--api-key", "KEY", &options->api_key,
             "Unless given, what OPENAI_API_KEY in the environment says");
  flags.toggle("--insecure", &options->insecure, "Take any TLS certificate");
}

void add_workload_flags(FlagSet& flags, Options* options) {
  ServePromptConfig& prompts = options->prompts;
  flags.begin_group("Workload");
  flags.choice("--dataset-name", {"random", "sharegpt", "trace"}, &prompts.dataset_name,
               "Random prompts, dialogues, or recorded requests");
  flags.file("--dataset-path", &prompts.dataset_path,
             "A JSON file in ShareGPT's format, or a trace of JSON lines");
  flags.number("--num-prompts", &prompts.num_prompts, {.min = 1, .max = 1 << 20},
               "Requests; of a trace: at most");
  flags.number("--random-input-len", &prompts.input_len, {.min = 1, .max = 1 << 24},
               "Tokens of a random prompt");
  flags.number("--random-output-len", &prompts.output_len, {.min = 1, .max = 1 << 24},
               "Tokens of an answer to it");
  flags.number("--random-range-ratio", &prompts.range_ratio,
               {.min = 0, .max = 1, .max_excluded = true},
               "R: random lengths lie in [len * (1 - R), len * (1 + R)]");
  flags.add({.name = "--random-prompts",
             .value_name = "ids|words",
             .help = "Random prompts of token ids, or of English words (chats: always)",
             .default_text = "ids",
             .choices = {"ids", "words"},
             .set = [&prompts](std::string_view value) {
               if (value != "ids" && value != "words") return unexpected(value, "ids or words");
               prompts.wants_text = value == "words";
               return Status();
             }});
  flags.number("--vocab-size", &options->vocab_size, {.min = 0, .max = 1 << 30},
               "Random ids are below this; 0: what /tokenizer_info says");
  flags.number("--sharegpt-output-len", &prompts.sharegpt_output_len, {.min = 0, .max = 1 << 24},
               "Tokens of an answer; 0: as many as the dialogue's own");
  flags.toggle("--ignore-eos", &options->ignore_eos, "Answers have their full length");
  flags.number("--temperature", &options->temperature, {.min = 0}, "Of the sampling");
  flags.seed("--seed", &prompts.seed, "Of prompts and arrivals");
}

void add_load_flags(FlagSet& flags, Options* options) {
  flags.begin_group("Load");
  flags.add({.name = "--request-rate",
             .value_name = "X",
             .help = "Requests a second; inf: all at once, or at a trace's own times",
             .default_text = "inf",
             .set = [options](std::string_view value) -> Status {
               options->has_rate = value != "inf";
               if (!options->has_rate) return {};
               const auto rate = parse_number(value, {.min = 0, .min_excluded = true});
               if (!rate.ok()) return unexpected(value, "a number above 0, or inf");
               options->arrivals.request_rate = *rate;
               return {};
             }});
  flags.number("--burstiness", &options->arrivals.burstiness, {.min = 0, .min_excluded = true},
               "1: Poisson's arrivals; below: burstier, above: more even");
  flags.number("--max-concurrency", &options->max_concurrency, {.min = 0, .max = 1 << 20},
               "Requests in work at once; 0: no bound");
  flags.number("--num-warmups", &options->num_warmups, {.min = 0, .max = 1 << 20},
               "Requests before the measurement, all with the first prompt");
}

void add_report_flags(FlagSet& flags, Options* options) {
  flags.begin_group("Report");
  flags.add({.name = "--percentile-metrics",
             .value_name = "LIST",
             .help = "What to print",
             .default_text = "ttft,tpot,itl,e2el",
             .set = parsed_into(&options->kinds, parse_latency_kinds)});
  flags.add({.name = "--metric-percentiles",
             .value_name = "LIST",
             .help = "Which percentiles",
             .default_text = "99",
             .set = parsed_into(&options->percents, parse_percents)});
  flags.add({.name = "--goodput",
             .value_name = "LIMITS",
             .help = "Also the rate of requests within limits in ms: ttft:200,tpot:50,e2el:9000",
             .set = parsed_into(&options->limits, parse_goodput)});
  flags.output_file("--json", &options->json, "Write the results to this file");
}

}  // namespace

Command bench_serve_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "serve";
  command.summary = "Load on a server that speaks OpenAI's API: latencies, tokens a second";
  command.example =
      "  quire bench serve --random-input-len 128 --random-output-len 64 --num-prompts 256 "
      "--max-concurrency 64 --ignore-eos\n"
      "  quire bench serve --base-url http://127.0.0.1:8080 --dataset-name sharegpt "
      "--dataset-path sharegpt.json --request-rate 4 --goodput ttft:200,tpot:50";
  command.details =
      "Random prompts are token ids, which Quire and vLLM take; --random-prompts words is for\n"
      "servers that take text alone. A trace has a JSON object a line: timestamp_ms (or none),\n"
      "output_length, and prompt, prompt_token_ids or input_length. Definitions and names of\n"
      "metrics are vLLM's. Numbers of tokens are the server's own (usage) where it says them.";
  add_server_flags(command.flags, options.get());
  add_workload_flags(command.flags, options.get());
  add_load_flags(command.flags, options.get());
  add_report_flags(command.flags, options.get());
  command.check = [options] { return check(*options); };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
