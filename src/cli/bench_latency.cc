#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/bench_run.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "quire/engine.h"

namespace quire::cli {
namespace {

struct Options {
  EngineConfig engine;
  int input_len = 32;
  int output_len = 128;
  int batch_size = 8;
  int num_iters_warmup = 10;
  int num_iters = 30;
  std::string json;

  // All iterations run the same prompts, so the prefix cache would serve all but the first.
  Options() { engine.enable_prefix_caching = false; }
};

// Token ids are below 10000, as in vLLM.
std::vector<BenchRequest> batch_of_prompts(const Options& options, int vocab_size) {
  std::mt19937_64 random(options.engine.seed);
  const auto bound = static_cast<uint64_t>(std::min(vocab_size, 10000));
  std::vector<BenchRequest> requests(static_cast<size_t>(options.batch_size));
  for (BenchRequest& request : requests) {
    request.output_len = options.output_len;
    for (int i = 0; i < options.input_len; ++i) {
      request.prompt_token_ids.push_back(static_cast<int32_t>(uniform_below(random, bound)));
    }
  }
  return requests;
}

struct Measurement {
  Status end;                       // kCancelled after Ctrl-C; the rest covers what finished
  std::vector<double> latencies_s;  // one per iteration
  BenchResult token_times;          // of all iterations
};

Result<Measurement> measure(const Options& options, Engine& engine,
                            std::span<const BenchRequest> requests) {
  Measurement measurement;
  const int num_total = options.num_iters_warmup + options.num_iters;
  Progress progress("latency", static_cast<size_t>(num_total));
  for (int i = 0; i < num_total; ++i) {
    progress.update(static_cast<size_t>(i), i < options.num_iters_warmup ? "warming up" : "");
    QUIRE_ASSIGN_OR_RETURN(const BenchResult result, run_bench(engine, to_requests(requests), ""));
    if (!result.end.ok()) {
      measurement.end =
          cancelled(fmt::format("[bench] interrupted after {} of {} batches", i, num_total));
      break;
    }
    if (i < options.num_iters_warmup) continue;
    measurement.latencies_s.push_back(result.elapsed_s);
    BenchResult& all = measurement.token_times;
    all.first_token_s.insert(all.first_token_s.end(), result.first_token_s.begin(),
                             result.first_token_s.end());
    all.per_token_s.insert(all.per_token_s.end(), result.per_token_s.begin(),
                           result.per_token_s.end());
  }
  return measurement;
}

void print_report(const Measurement& measurement) {
  print_stdout("Avg latency: {:.6f} seconds\n", mean(measurement.latencies_s));
  print_stdout("Std latency: {:.6f} seconds\n", standard_deviation(measurement.latencies_s));
  for (const auto& [percent, value] : percentiles(measurement.latencies_s)) {
    print_stdout("{}% percentile latency: {:.6f} seconds\n", percent, value);
  }
  print_token_times(measurement.token_times);
}

// Fields that vLLM also reports have vLLM's names.
std::string json_report(const Measurement& measurement) {
  JsonWriter json;
  json.begin_object();
  json.field("avg_latency", mean(measurement.latencies_s));
  json.field("std_latency", standard_deviation(measurement.latencies_s));
  json.key("latencies");
  json.begin_array();
  for (const double latency : measurement.latencies_s) json.value(latency);
  json.end_array();
  json.key("percentiles");
  json.begin_object();
  for (const auto& [percent, value] : percentiles(measurement.latencies_s)) {
    json.field(fmt::format("{}", percent), value);
  }
  json.end_object();
  write_token_times(json, measurement.token_times);
  json.end_object();
  return json.text() + "\n";
}

Result<int> run(const Options& options) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  const ModelInfo& model = engine->model_info();
  QUIRE_RETURN_IF_ERROR(check_lengths(options.input_len, options.output_len, model.max_model_len,
                                      "--input-len or --output-len"));
  const auto requests = batch_of_prompts(options, model.vocab_size);
  const CancelScope scope;
  QUIRE_ASSIGN_OR_RETURN(const Measurement measurement, measure(options, *engine, requests));
  if (!measurement.end.ok()) {
    if (measurement.latencies_s.empty()) return measurement.end;
    print_partial(measurement.end);
    print_report(measurement);
    return measurement.end;
  }
  print_report(measurement);
  if (!options.json.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.json, json_report(measurement)));
  }
  return kExitOk;
}

}  // namespace

Command bench_latency_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "latency";
  command.summary = "How long one batch takes from start to end";
  command.example =
      "  quire bench latency --input-len 32 --output-len 128 --batch-size 1 --num-iters 10";
  FlagSet& flags = command.flags;
  flags.begin_group("Workload");
  flags.number("--input-len", &options->input_len, {.min = 1, .max = 1 << 24},
               "Tokens of each prompt");
  flags.number("--output-len", &options->output_len, {.min = 1, .max = 1 << 24},
               "Tokens of each answer");
  flags.number("--batch-size", &options->batch_size, {.min = 1, .max = 65536},
               "Requests in the batch");
  flags.number("--num-iters-warmup", &options->num_iters_warmup, {.min = 0, .max = 1 << 20},
               "Batches before the measurement");
  flags.number("--num-iters", &options->num_iters, {.min = 1, .max = 1 << 20},
               "Batches to measure");
  flags.output_file("--json", &options->json, "Write the results to this file");
  flags.alias("--output-json");
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
