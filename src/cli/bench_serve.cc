// The command bench serve: flags over bench/serve_bench.h.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "bench/serve_bench.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"

namespace quire::cli {
namespace {

using bench::Goodput;
using bench::LatencyKind;
using bench::ServeBenchOptions;

struct ServeBenchCommand {
  ServeBenchOptions options;
  std::string json;
};

// Splits a list at commas and spaces, and omits empty parts.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t size = std::min(text.find_first_of(", "), text.size());
    if (size > 0) words.push_back(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return words;
}

// Parses "ttft,tpot".
Result<std::vector<LatencyKind>> parse_latency_kinds(std::string_view text) {
  std::vector<LatencyKind> kinds;
  for (const std::string_view part : words_of(text)) {
    const auto kind = bench::latency_kind(part);
    if (!kind) return unexpected(text, "some of ttft, tpot, itl, e2el, separated by commas");
    kinds.push_back(*kind);
  }
  return kinds;
}

// Parses "50,99.9".
Result<std::vector<double>> parse_percents(std::string_view text) {
  std::vector<double> percents;
  for (const std::string_view part : words_of(text)) {
    const auto percent = parse_number(part, {.min = 0, .max = 100});
    if (!percent.ok()) return unexpected(text, "numbers in [0, 100], separated by commas");
    percents.push_back(*percent);
  }
  return percents;
}

// Parses "ttft:200 tpot:50", separated by spaces or commas.
Result<std::vector<Goodput>> parse_goodput(std::string_view text) {
  std::vector<Goodput> limits;
  for (const std::string_view part : words_of(text)) {
    const size_t colon = std::min(part.find(':'), part.size());
    const auto kind = bench::latency_kind(part.substr(0, colon));
    const auto limit = parse_number(part.substr(std::min(colon + 1, part.size())), {.min = 0});
    if (!kind || *kind == LatencyKind::kItl || !limit.ok()) {
      return unexpected(text, "limits in ms of ttft, tpot or e2el, such as ttft:200,tpot:50");
    }
    limits.push_back({*kind, *limit});
  }
  return limits;
}

Result<int> run(const ServeBenchCommand& command) {
  ServeBenchOptions options = command.options;
  const char* key = std::getenv("OPENAI_API_KEY");
  if (options.api_key.empty() && key != nullptr) options.api_key = key;
  const CancelScope scope;
  Progress progress("serve");
  QUIRE_ASSIGN_OR_RETURN(const bench::ServeBenchResult result,
                         bench::measure_server(options, measurement_hooks(progress)));
  if (!result.end.ok()) append_stdout("Partial: the benchmark was interrupted\n");
  append_stdout(to_table(result.result, options.report));
  for (const std::string& remark : result.remarks) {
    print_stderr("quire bench serve: {}\n", remark);
  }
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(result, options)));
  QUIRE_RETURN_IF_ERROR(result.end);
  return result.result.num_failed == 0 ? kExitOk : kExitFailure;  // the remarks state the errors
}

Status check(const ServeBenchOptions& options) {
  const bool is_random = options.dataset.dataset_name == "random";
  if (is_random != options.dataset.dataset_path.empty()) {
    return invalid_argument(
        "expected --dataset-path FILE with --dataset-name sharegpt or trace only");
  }
  return bench::check_server(options);
}

void add_server_flags(FlagSet& flags, ServeBenchOptions* options) {
  flags.begin_group("Server");
  flags.text("--base-url", "URL", &options->base_url,
             "http://HOST:PORT or https://HOST:PORT, instead of --host and --port");
  flags.text("--host", "HOST", &options->host, "The server's host");
  flags.number("--port", &options->port, {.min = 1, .max = 65535}, "The server's port");
  flags.file("--uds", &options->uds, "The server's Unix socket, instead of --host and --port");
  flags.choice("--endpoint", {"/v1/completions", "/v1/chat/completions"}, &options->endpoint,
               "Route to measure");
  flags.text("--model", "NAME", &options->model,
             "The model's name; without it, the first of /v1/models");
  flags.text("--api-key", "KEY", &options->api_key,
             "API key; without it, OPENAI_API_KEY of the environment");
  flags.toggle("--insecure", &options->insecure, "Accept any TLS certificate");
}

void add_workload_flags(FlagSet& flags, ServeBenchOptions* options) {
  bench::ServeDatasetConfig& dataset = options->dataset;
  flags.begin_group("Workload");
  flags.choice("--dataset-name", {"random", "sharegpt", "trace"}, &dataset.dataset_name,
               "Random prompts, dialogues, or recorded requests");
  flags.file("--dataset-path", &dataset.dataset_path,
             "A JSON file in ShareGPT's format, or a trace of JSON lines");
  flags.number("--num-prompts", &dataset.num_prompts, {.min = 1, .max = 1 << 20},
               "Requests; with a trace: most requests");
  flags.number("--random-input-len", &dataset.input_len, {.min = 1, .max = 1 << 24},
               "Tokens per random prompt");
  flags.number("--random-output-len", &dataset.output_len, {.min = 1, .max = 1 << 24},
               "Output tokens per random prompt");
  flags.number("--random-range-ratio", &dataset.range_ratio,
               {.min = 0, .max = 1, .max_excluded = true},
               "R: random lengths lie in [len * (1 - R), len * (1 + R)]");
  flags.choice("--random-prompts", {"ids", "words"}, &options->random_prompts,
               "Random prompts of token ids, or of English words (chats: always)");
  flags.number("--vocab-size", &options->vocab_size, {.min = 0, .max = 1 << 30},
               "Upper bound of random ids; 0: the size that /tokenizer_info reports");
  flags.number("--sharegpt-output-len", &dataset.sharegpt_output_len, {.min = 0, .max = 1 << 24},
               "Output tokens per request; 0: as many as the dialogue's reply");
  flags.toggle("--ignore-eos", &options->ignore_eos,
               "Generate all output tokens, even after the end-of-sequence token");
  flags.number("--temperature", &options->temperature, {.min = 0}, "Sampling temperature");
  flags.seed("--seed", &dataset.seed, "Seed of prompts and arrivals");
}

void add_load_flags(FlagSet& flags, ServeBenchOptions* options) {
  flags.begin_group("Load");
  flags.value("--request-rate", "X", &options->arrivals.request_rate, "inf",
              "Requests per second; inf: all at once, or at a trace's own times",
              [](std::string_view text) -> Result<double> {
                if (text == "inf") return std::numeric_limits<double>::infinity();
                const auto rate = parse_number(text, {.min = 0, .min_excluded = true});
                return rate.ok() ? rate : unexpected(text, "a number above 0, or inf");
              });
  flags.number("--burstiness", &options->arrivals.burstiness, {.min = 0, .min_excluded = true},
               "1: Poisson arrivals; below 1: burstier, above 1: more even");
  flags.number("--max-concurrency", &options->max_concurrency, {.min = 0, .max = 1 << 20},
               "Most requests at once; 0: no limit");
  flags.number("--num-warmups", &options->num_warmups, {.min = 0, .max = 1 << 20},
               "Requests before the measurement, all with the first prompt");
}

void add_report_flags(FlagSet& flags, ServeBenchOptions* options) {
  flags.begin_group("Report");
  flags.value("--percentile-metrics", "LIST", &options->report.kinds, "ttft,tpot,itl,e2el",
              "Latencies to print", parse_latency_kinds);
  flags.value("--metric-percentiles", "LIST", &options->report.percents, "99",
              "Percentiles to print", parse_percents);
  flags.value("--goodput", "LIMITS", &options->goodput, "",
              "Also report the rate of requests within limits in ms: ttft:200,tpot:50,e2el:9000",
              parse_goodput);
}

}  // namespace

Command bench_serve_command() {
  const auto state = std::make_shared<ServeBenchCommand>();
  Command command;
  command.name = "serve";
  command.summary = "Put load on a server with OpenAI's API: latencies, tokens per second";
  command.example =
      "  quire bench serve --random-input-len 128 --random-output-len 64 --num-prompts 256 "
      "--max-concurrency 64 --ignore-eos\n"
      "  quire bench serve --base-url http://127.0.0.1:8080 --dataset-name sharegpt "
      "--dataset-path sharegpt.json --request-rate 4 --goodput ttft:200,tpot:50";
  command.details =
      "Random prompts are token ids, which Quire and vLLM accept; --random-prompts words is for\n"
      "servers that accept only text. A trace has one JSON object per line: timestamp_ms (or\n"
      "none), output_length, and prompt, prompt_token_ids or input_length. Definitions and names\n"
      "of metrics are vLLM's. Token counts are the server's own (usage) where it reports them.\n"
      "Drafts are counted by its /metrics (vllm:spec_decode_*), for all clients of the server.";
  add_server_flags(command.flags, &state->options);
  add_workload_flags(command.flags, &state->options);
  add_load_flags(command.flags, &state->options);
  add_report_flags(command.flags, &state->options);
  command.flags.output_file("--json", &state->json, "Write the results to this file");
  command.check = [state](Complaints& complaints) { complaints.add(check(state->options)); };
  command.run = [state] { return run(*state); };
  return command;
}

}  // namespace quire::cli
