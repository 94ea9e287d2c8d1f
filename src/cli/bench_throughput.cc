#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/bench_run.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/load_engine.h"
#include "cli/output.h"
#include "cli/profile_report.h"
#include "platform/platform.h"
#include "quire/engine.h"

namespace quire::cli {
namespace {

struct Options {
  EngineConfig engine;
  std::string dataset_name = "random";
  std::string dataset_path;
  int input_len = 1024;
  int output_len = 0;  // 0: 128 for random prompts, a dialogue's own answer for ShareGPT
  double range_ratio = 0.0;
  int num_prompts = 1000;
  bool profile = false;
  std::string json;

  // Like vLLM, measures without the prefix cache, because cache hits would inflate the numbers.
  Options() { engine.enable_prefix_caching = false; }
};

Result<std::vector<BenchRequest>> sharegpt_requests(const Options& options, const Engine& engine) {
  QUIRE_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::load(options.dataset_path));
  QUIRE_ASSIGN_OR_RETURN(std::vector<Dialogue> dialogues,
                         parse_sharegpt(document, options.dataset_path));
  ShareGptDataset dataset;
  dataset.num_prompts = options.num_prompts;
  dataset.output_len = options.output_len;
  dataset.seed = options.engine.seed;
  dataset.max_total_len = std::min(dataset.max_total_len, engine.model_info().max_model_len);
  dataset.tokenize = [&](std::string_view text) { return engine.encode(text, true); };
  return dataset.sample(std::move(dialogues));
}

Result<std::vector<BenchRequest>> sample_requests(const Options& options, const Engine& engine) {
  if (options.dataset_name == "sharegpt") return sharegpt_requests(options, engine);
  const RandomDataset dataset = {.input_len = options.input_len,
                                 .output_len = options.output_len > 0 ? options.output_len : 128,
                                 .range_ratio = options.range_ratio,
                                 .num_prompts = options.num_prompts,
                                 .seed = options.engine.seed,
                                 .vocab_size = engine.model_info().vocab_size};
  QUIRE_RETURN_IF_ERROR(check_lengths(dataset.max_prompt_len(), dataset.max_output_len(),
                                      engine.model_info().max_model_len,
                                      "--input-len, --output-len or --random-range-ratio"));
  return dataset.sample();
}

// Runs a few prompts that are not measured, so that weights, cache and code have been touched once.
Status warm_up(Engine& engine, std::span<const BenchRequest> requests) {
  std::vector<BenchRequest> few;
  for (const BenchRequest& request : requests.first(std::min<size_t>(requests.size(), 4))) {
    BenchRequest warm = request;
    std::reverse(warm.prompt_token_ids.begin(), warm.prompt_token_ids.end());
    warm.prompt_token_ids.resize(std::min<size_t>(warm.prompt_token_ids.size(), 64));
    warm.output_len = std::min(warm.output_len, 8);
    few.push_back(std::move(warm));
  }
  QUIRE_ASSIGN_OR_RETURN(const BenchResult result, run_bench(engine, to_requests(few), ""));
  return result.end.ok() ? Status() : cancelled("[bench] interrupted while warming up");
}

void print_report(const BenchResult& result) {
  print_stdout("Throughput: {:.2f} requests/s, {:.2f} total tokens/s, {:.2f} output tokens/s\n",
               result.requests_per_s(), result.total_tokens_per_s(), result.output_tokens_per_s());
  print_stdout("Total num prompt tokens:  {}\n", result.num_prompt_tokens);
  print_stdout("Total num output tokens:  {}\n", result.num_output_tokens);
  print_token_times(result);
}

// Fields that vLLM also reports have vLLM's names.
std::string json_report(const BenchResult& result, const std::optional<DeviceProfile>& profile) {
  JsonWriter json;
  json.begin_object();
  json.field("elapsed_time", result.elapsed_s);
  json.field("num_requests", result.num_requests);
  json.field("total_num_tokens", result.num_prompt_tokens + result.num_output_tokens);
  json.field("requests_per_second", result.requests_per_s());
  json.field("tokens_per_second", result.total_tokens_per_s());
  json.field("output_tokens_per_second", result.output_tokens_per_s());
  json.field("total_prompt_tokens", result.num_prompt_tokens);
  json.field("total_output_tokens", result.num_output_tokens);
  write_token_times(json, result);
  if (profile) write_profile(json, *profile);
  json.end_object();
  return json.text() + "\n";
}

Result<int> run(const Options& options) {
  std::unique_ptr<DeviceProfiler> profiler;
  if (options.profile) {
    QUIRE_ASSIGN_OR_RETURN(profiler, make_device_profiler(PlatformConfig().devices.front()));
  }
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(options.engine));
  QUIRE_ASSIGN_OR_RETURN(const auto requests, sample_requests(options, *engine));
  const CancelScope scope;
  QUIRE_RETURN_IF_ERROR(warm_up(*engine, requests));
  if (profiler) QUIRE_RETURN_IF_ERROR(profiler->start());
  QUIRE_ASSIGN_OR_RETURN(const BenchResult result,
                         run_bench(*engine, to_requests(requests), "throughput"));
  if (!result.end.ok()) {
    if (result.num_requests == 0) return result.end;
    print_partial(result.end);
    print_report(result);
    return result.end;
  }
  std::optional<DeviceProfile> profile;
  if (profiler) {
    QUIRE_ASSIGN_OR_RETURN(profile, profiler->stop());
  }
  print_report(result);
  if (profile) print_profile(*profile);
  if (!options.json.empty()) {
    QUIRE_RETURN_IF_ERROR(write_output_file(options.json, json_report(result, profile)));
  }
  return kExitOk;
}

}  // namespace

Command bench_throughput_command() {
  const auto options = std::make_shared<Options>();
  Command command;
  command.name = "throughput";
  command.summary = "Requests and tokens a second, everything submitted at once";
  command.example =
      "  quire bench throughput --input-len 128 --output-len 32 --num-prompts 32\n"
      "  quire bench throughput --dataset-name sharegpt --dataset-path sharegpt.json "
      "--num-prompts 100 --json result.json";
  FlagSet& flags = command.flags;
  flags.begin_group("Workload");
  flags.choice("--dataset-name", {"random", "sharegpt"}, &options->dataset_name,
               "Random token ids, or dialogues of --dataset-path");
  flags.file("--dataset-path", &options->dataset_path, "A JSON file in ShareGPT's format");
  flags.number("--input-len", &options->input_len, {.min = 1, .max = 1 << 24},
               "Tokens of a random prompt");
  flags.number("--output-len", &options->output_len, {.min = 0, .max = 1 << 24},
               "Tokens of an answer; 0: 128, or as long as the dialogue's own");
  flags.number("--random-range-ratio", &options->range_ratio,
               {.min = 0, .max = 1, .max_excluded = true},
               "R: random lengths lie in [len * (1 - R), len * (1 + R)]");
  flags.number("--num-prompts", &options->num_prompts, {.min = 1, .max = 1 << 20}, "Requests");
  flags.output_file("--json", &options->json, "Write the results to this file");
  flags.alias("--output-json");
  flags.toggle("--profile", &options->profile,
               "Also say where a GPU's time goes, by kernel (needs libcupti; costs some speed)");
  add_engine_flags(flags, &options->engine, SeedFlag::kOfEngine);
  command.check = [options] {
    if ((options->dataset_name == "sharegpt") == options->dataset_path.empty()) {
      return invalid_argument("expected --dataset-path FILE with --dataset-name sharegpt only");
    }
    const Options unset;
    const bool of_random =
        options->input_len != unset.input_len || options->range_ratio != unset.range_ratio;
    if (options->dataset_name == "sharegpt" && of_random) {
      return invalid_argument(
          "--input-len and --random-range-ratio go with --dataset-name random only: a dialogue has "
          "its own lengths");
    }
    return Status();
  };
  command.run = [options] { return run(*options); };
  return command;
}

}  // namespace quire::cli
