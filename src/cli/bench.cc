// The commands bench throughput, bench latency and eval: flags over src/bench.
#include <memory>

#include "bench/engine_bench.h"
#include "bench/gsm8k.h"
#include "bench/perplexity.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "platform/platform.h"

namespace quire::cli {
namespace {

constexpr Range kLength = {.min = 1, .max = 1 << 24};

// Returns a configuration without the prefix cache (as in vLLM's benchmarks), because cache hits
// would inflate the numbers, and without packed weights, because writing them would slow down the
// measurement.
EngineConfig uncached() {
  EngineConfig config;
  config.enable_prefix_caching = false;
  config.packed_weights = "off";
  return config;
}

void add_json_flag(FlagSet& flags, std::string* target) {
  flags.output_file("--json", target, "Write the results to this file");
  flags.last().alias = "--output-json";
}

struct ThroughputCommand {
  EngineConfig engine = uncached();
  bench::ThroughputOptions options;
  bool profile = false;
  std::string json;
};

Result<int> run(const ThroughputCommand& command) {
  std::unique_ptr<DeviceProfiler> profiler;
  if (command.profile) {
    QUIRE_ASSIGN_OR_RETURN(profiler, make_device_profiler(PlatformConfig().devices.front()));
  }
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(command.engine));
  bench::ThroughputOptions options = command.options;
  options.seed = command.engine.seed;
  const CancelScope scope;
  Progress progress("throughput");
  QUIRE_ASSIGN_OR_RETURN(
      const bench::ThroughputResult result,
      bench::measure_throughput(*engine, options, profiler.get(), measurement_hooks(progress)));
  if (result.requests.num_requests > 0) append_stdout(to_text(result));
  QUIRE_RETURN_IF_ERROR(result.requests.end);
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(result)));
  return kExitOk;
}

Status check(const bench::ThroughputOptions& options) {
  const bool is_sharegpt = options.dataset_name == "sharegpt";
  if (is_sharegpt == options.dataset_path.empty()) {
    return invalid_argument("expected --dataset-path FILE with --dataset-name sharegpt only");
  }
  const bench::ThroughputOptions unset;
  const bool has_lengths = options.input_len != unset.input_len ||
                           options.random_range_ratio != unset.random_range_ratio;
  if (is_sharegpt && has_lengths) {
    return invalid_argument(
        "expected --input-len and --random-range-ratio with --dataset-name random only");
  }
  return {};
}

struct LatencyCommand {
  EngineConfig engine = uncached();
  bench::LatencyOptions options;
  std::string json;
};

Result<int> run(const LatencyCommand& command) {
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(command.engine));
  bench::LatencyOptions options = command.options;
  options.seed = command.engine.seed;
  const CancelScope scope;
  Progress progress("latency");
  QUIRE_ASSIGN_OR_RETURN(const bench::LatencyResult result,
                         bench::measure_latency(*engine, options, measurement_hooks(progress)));
  if (!result.latencies_s.empty()) append_stdout(to_text(result));
  QUIRE_RETURN_IF_ERROR(result.requests.end);
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(result)));
  return kExitOk;
}

struct Gsm8kCommand {
  EngineConfig engine;
  bench::Gsm8kOptions options;
  std::string json;
};

Result<int> run(const Gsm8kCommand& command) {
  QUIRE_ASSIGN_OR_RETURN(const bench::Gsm8kData data, bench::load_gsm8k(command.options));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(command.engine));
  const CancelScope scope;
  Progress progress("gsm8k");
  QUIRE_ASSIGN_OR_RETURN(
      const bench::Gsm8kResult result,
      bench::evaluate_gsm8k(*engine, command.options, data, measurement_hooks(progress)));
  for (const std::string& refusal : result.refusals) {
    print_stderr("quire eval gsm8k: counted as invalid: {}\n", one_line(refusal));
  }
  append_stdout(to_text(result));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(result, command.options)));
  return kExitOk;
}

Command gsm8k_command() {
  const auto state = std::make_shared<Gsm8kCommand>();
  bench::Gsm8kOptions& options = state->options;
  Command command;
  command.name = "gsm8k";
  command.summary = "Accuracy on grade-school word problems, as SGLang's benchmark measures it";
  command.example =
      "  quire eval gsm8k --data test.jsonl --shots train.jsonl --num-shots 8 --num-questions 200";
  FlagSet& flags = command.flags;
  flags.begin_group("Evaluation");
  flags.file("--data", &options.data, "JSON lines of question and answer (required)");
  flags.file("--shots", &options.shots,
             "File with the shots; without it, the first lines of --data");
  flags.number("--num-shots", &options.num_shots, {.min = 0, .max = 1000},
               "Solved problems before each question");
  flags.number("--num-questions", &options.num_questions, {.min = 1}, "Most questions to ask");
  flags.number("--parallel", &options.parallel, {.min = 1}, "Most questions in flight");
  flags.number("--max-tokens", &options.max_tokens, {.min = 1}, "Most output tokens per problem");
  flags.toggle("--ignore-eos", &options.ignore_eos,
               "Generate exactly --max-tokens per problem, to measure speed");
  flags.output_file("--json", &state->json, "Write the results to this file");
  add_engine_flags(flags, &state->engine, SeedFlag::kOfEngine);
  command.positional = model_argument(&state->engine);
  command.check = [state](Complaints& complaints) {
    if (state->options.data.empty()) complaints.add("expected --data FILE.jsonl");
  };
  command.run = [state] { return run(*state); };
  return command;
}

struct PerplexityCommand {
  EngineConfig engine;
  bench::PerplexityOptions options;
  std::string json;
};

Result<int> run(const PerplexityCommand& command) {
  QUIRE_ASSIGN_OR_RETURN(const std::string text, bench::load_text(command.options.data));
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(command.engine));
  QUIRE_ASSIGN_OR_RETURN(const bench::TokenizedText tokens,
                         bench::tokenize_text(*engine, text, command.options));
  const CancelScope scope;
  Progress progress("perplexity");
  QUIRE_ASSIGN_OR_RETURN(
      const bench::PerplexityResult result,
      bench::evaluate_perplexity(*engine, command.options, tokens, measurement_hooks(progress)));
  append_stdout(to_text(result));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(result, engine->model_info())));
  return kExitOk;
}

Command perplexity_command() {
  const auto state = std::make_shared<PerplexityCommand>();
  bench::PerplexityOptions& options = state->options;
  Command command;
  command.name = "perplexity";
  command.summary = "How well a model predicts each token of a text from those before it";
  command.example = "  quire eval perplexity --data wiki.test.raw --context 512 --stride 256";
  FlagSet& flags = command.flags;
  flags.begin_group("Evaluation");
  flags.file("--data", &options.data, "A text, read as it is; - is standard input (required)");
  flags.number("--context", &options.context, {.min = 1, .max = 1 << 24},
               "Most tokens that the model reads before the one it predicts");
  flags.last().default_text = "512, or all that the model has";
  flags.number("--stride", &options.stride, {.min = 1, .max = 1 << 24},
               "Tokens from one window to the next, at most --context");
  flags.last().default_text = "half of --context";
  flags.number("--max-tokens", &options.max_tokens, {.min = 2},
               "Use this many tokens from the start of the text");
  flags.last().default_text = "all";
  flags.output_file("--json", &state->json, "Write the results to this file");
  add_engine_flags(flags, &state->engine, SeedFlag::kOfEngine);
  command.positional = model_argument(&state->engine);
  command.check = [state](Complaints& complaints) {
    const bench::PerplexityOptions& given = state->options;
    if (given.data.empty()) complaints.add("expected --data FILE");
    if (given.context > 0) complaints.add(bench::check_stride(given.stride, given.context));
  };
  command.run = [state] { return run(*state); };
  return command;
}

}  // namespace

Command bench_throughput_command() {
  const auto state = std::make_shared<ThroughputCommand>();
  bench::ThroughputOptions& options = state->options;
  Command command;
  command.name = "throughput";
  command.summary = "Requests and tokens per second, all requests submitted at once";
  command.example =
      "  quire bench throughput --input-len 128 --output-len 32 --num-prompts 32\n"
      "  quire bench throughput --dataset-name sharegpt --dataset-path sharegpt.json "
      "--num-prompts 100 --json result.json";
  FlagSet& flags = command.flags;
  flags.begin_group("Workload");
  flags.choice("--dataset-name", {"random", "sharegpt"}, &options.dataset_name,
               "Random token ids, or dialogues of --dataset-path");
  flags.file("--dataset-path", &options.dataset_path, "A JSON file in ShareGPT's format");
  flags.number("--input-len", &options.input_len, kLength, "Tokens per random prompt");
  flags.number("--output-len", &options.output_len, {.min = 0, .max = 1 << 24},
               "Output tokens per request; 0: 128, or as many as the dialogue's reply");
  flags.number("--random-range-ratio", &options.random_range_ratio,
               {.min = 0, .max = 1, .max_excluded = true},
               "R: random lengths lie in [len * (1 - R), len * (1 + R)]");
  flags.number("--num-prompts", &options.num_prompts, {.min = 1, .max = 1 << 20}, "Requests");
  add_json_flag(flags, &state->json);
  flags.toggle("--profile", &state->profile,
               "Also report a GPU's time by kernel (needs libcupti; costs some speed)");
  add_engine_flags(flags, &state->engine, SeedFlag::kOfEngine);
  command.positional = model_argument(&state->engine);
  command.check = [state](Complaints& complaints) {
    complaints.add(check(state->options));
    if (state->profile && state->engine.device == "cpu") {
      complaints.add("--profile: expected a GPU, got --device cpu");
    }
  };
  command.run = [state] { return run(*state); };
  return command;
}

Command bench_latency_command() {
  const auto state = std::make_shared<LatencyCommand>();
  bench::LatencyOptions& options = state->options;
  Command command;
  command.name = "latency";
  command.summary = "Time that one batch takes from start to end";
  command.example =
      "  quire bench latency --input-len 32 --output-len 128 --batch-size 1 --num-iters 10";
  FlagSet& flags = command.flags;
  flags.begin_group("Workload");
  flags.number("--input-len", &options.input_len, kLength, "Tokens per prompt");
  flags.number("--output-len", &options.output_len, kLength, "Output tokens per request");
  flags.number("--batch-size", &options.batch_size, {.min = 1, .max = 65536},
               "Requests in the batch");
  flags.number("--num-iters-warmup", &options.num_iters_warmup, {.min = 0, .max = 1 << 20},
               "Batches before the measurement");
  flags.number("--num-iters", &options.num_iters, {.min = 1, .max = 1 << 20}, "Batches to measure");
  add_json_flag(flags, &state->json);
  add_engine_flags(flags, &state->engine, SeedFlag::kOfEngine);
  command.positional = model_argument(&state->engine);
  command.run = [state] { return run(*state); };
  return command;
}

Command bench_command() {
  Command command;
  command.name = "bench";
  command.summary = "Measure an engine, a server, or attention alone";
  command.example =
      "  quire bench throughput --input-len 128 --output-len 32 --num-prompts 32\n"
      "  quire bench latency --batch-size 1\n"
      "  quire bench serve --max-concurrency 64 --num-prompts 256\n"
      "  quire bench attention --grid strict";
  command.subcommands = {bench_throughput_command(), bench_latency_command(), bench_serve_command(),
                         bench_attention_command()};
  return command;
}

Command eval_command() {
  Command command;
  command.name = "eval";
  command.summary = "Measure the accuracy of a model";
  command.example =
      "  quire eval gsm8k --data test.jsonl\n"
      "  quire eval perplexity --data wiki.test.raw";
  command.subcommands = {gsm8k_command(), perplexity_command()};
  return command;
}

}  // namespace quire::cli
