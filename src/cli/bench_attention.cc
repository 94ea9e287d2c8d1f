// The commands bench attention and tune: flags over bench/attention_bench.h and
// bench/thread_tuning.h.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "attn/selection.h"
#include "bench/attention_bench.h"
#include "bench/thread_tuning.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "platform/platform.h"
#include "start/settings.h"

namespace quire::cli {
namespace {

// Adds the flags and the argument that set the shapes of attention: the shapes of a model, or one
// shape that the head flags give.
void add_shape(Command& command, bench::AttentionShapeOptions* options) {
  FlagSet& flags = command.flags;
  flags.begin_group("Attention");
  add_attention_flags(flags, &options->engine);
  command.positional = model_argument(&options->engine);
  flags.number("--num-heads", &options->num_heads, {.min = 0, .max = 4096},
               "Query heads, instead of a model's");
  flags.number("--num-kv-heads", &options->num_kv_heads, {.min = 0, .max = 4096}, "KV heads");
  flags.number("--head-dim", &options->head_dim, {.min = 0, .max = 4096}, "Size of a head");
  flags.number("--latent-dim", &options->latent_dim, {.min = 0, .max = 4096},
               "Latent elements of a head (multi-head latent attention): these are the values too");
}

// Rejects an incomplete set of head flags, and head flags given together with a model.
Status check(const bench::AttentionShapeOptions& options) {
  const bool any = options.num_heads + options.num_kv_heads + options.head_dim > 0;
  const bool all = options.num_heads > 0 && options.num_kv_heads > 0 && options.head_dim > 0;
  if (any && !all) {
    return invalid_argument("expected --num-heads, --num-kv-heads and --head-dim together");
  }
  if (any && !options.engine.model.empty()) {
    return invalid_argument("expected a model or --num-heads, not both");
  }
  if (options.latent_dim > options.head_dim || (options.latent_dim > 0 && !all)) {
    return invalid_argument(
        fmt::format("--latent-dim: got {}, expected at most --head-dim, which is {}",
                    options.latent_dim, options.head_dim));
  }
  if (all && options.num_heads % options.num_kv_heads != 0) {
    return invalid_argument(
        fmt::format("--num-heads: got {}, expected a multiple of --num-kv-heads {}",
                    options.num_heads, options.num_kv_heads));
  }
  return {};
}

Status check(const bench::AttentionBenchOptions& options) {
  QUIRE_RETURN_IF_ERROR(check(options.shape));
  QUIRE_RETURN_IF_ERROR(refuse_cpu_cache(options.shape.engine));
  if (options.grid == "prefill" && options.q_lens != std::vector{1}) {
    return invalid_argument("expected --q-len with the grids of decode only, not with prefill");
  }
  if (options.grid != "prefill" && options.prefix_lens != std::vector{0}) {
    return invalid_argument(
        fmt::format("--cached-prefix: has no effect with --grid {}; leave it out, or set --grid "
                    "prefill",
                    options.grid));
  }
  for (const int seq_len : options.seq_lens) {
    if (seq_len >= options.q_lens.back()) continue;
    return invalid_argument(
        fmt::format("--seq-lens: got {}, expected at least the {} tokens of --q-len", seq_len,
                    options.q_lens.back()));
  }
  return {};
}

// Adds a flag for a list of integers in [min, max], such as 1,8,64. The target gets the list in
// ascending order, without duplicates.
void add_sizes(FlagSet& flags, std::string name, std::vector<int>* target, int max,
               std::string default_text, std::string help, int min = 1) {
  const auto parse = [min, max](std::string_view text) -> Result<std::vector<int>> {
    QUIRE_ASSIGN_OR_RETURN(std::vector<int> sizes, parse_ids(text));
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    if (sizes.front() >= min && sizes.back() <= max) return sizes;
    return unexpected(text, fmt::format("integers in [{}, {}], such as 1,8,64", min, max));
  };
  flags.value(std::move(name), "N,N", target, std::move(default_text), std::move(help), parse);
}

void add_backends(FlagSet& flags, std::vector<std::string>* target) {
  std::vector<std::string> known;
  for (const BackendName& backend : backend_names()) {
    if (backend.device == DeviceKind::kCuda) known.emplace_back(backend.name);
  }
  const std::string list = fmt::format("{}", fmt::join(known, ", "));
  const auto parse = [known, list](std::string_view text) -> Result<std::vector<std::string>> {
    const std::vector<std::string_view> names = split_list(text);
    for (const std::string_view name : names) {
      if (std::ranges::find(known, name) == known.end()) return unexpected(name, "one of " + list);
    }
    return std::vector<std::string>(names.begin(), names.end());
  };
  flags.value("--backends", "NAME,NAME", target, "all that support the shape",
              "Backends to measure, of " + list, parse);
}

struct AttentionCommand {
  bench::AttentionBenchOptions options;
  std::string json;
  std::string csv;
};

Result<int> run(const AttentionCommand& command) {
  const CancelScope scope;
  Progress progress("attention");
  QUIRE_ASSIGN_OR_RETURN(const bench::AttentionReport report,
                         bench::measure_attention(command.options, measurement_hooks(progress)));
  append_stdout(to_table(report));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.json, to_json(report)));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.csv, to_csv(report)));
  return CancelScope::interrupted() ? CancelScope::exit_code() : kExitOk;
}

struct TuneCommand {
  bench::TuneOptions options;
  std::string output;
};

// Returns the device if the flags alone determine it; nullopt: it depends on the machine. The head
// flags replace a model, which only a GPU's attention can be measured without.
std::optional<DeviceKind> named_device(const bench::AttentionShapeOptions& shape) {
  if (shape.engine.device == "cpu") return DeviceKind::kCpu;
  if (shape.engine.device == "cuda" || shape.num_heads > 0) return DeviceKind::kCuda;
  return std::nullopt;
}

// Refuses flags without effect. On a CPU, the command measures numbers of threads, with a model. On
// a GPU, it measures attention.
Status check_device(const bench::TuneOptions& options, DeviceKind device) {
  const EngineConfig& engine = options.shape.engine;
  const EngineConfig unset;
  const bool on_cpu = device == DeviceKind::kCpu;
  const std::pair<std::string_view, bool> without_effect[] = {
      {"--num-heads", on_cpu && options.shape.num_heads > 0},
      {"--q-len", on_cpu && options.q_lens != bench::TuneOptions().q_lens},
      {"--load-format", !on_cpu && engine.load_format != unset.load_format},
      {"--quantization", !on_cpu && engine.quantization != unset.quantization},
      {"--cpu-cores", !on_cpu && engine.cpu_cores != unset.cpu_cores},
      {"--cpu-pinning", !on_cpu && engine.cpu_pinning != unset.cpu_pinning},
      {"--cpu-activations", !on_cpu && engine.cpu_activations != unset.cpu_activations}};
  for (const auto& [flag, is_given] : without_effect) {
    if (!is_given) continue;
    const std::string error =
        fmt::format("{}: has no effect on {}; leave it out", flag,
                    on_cpu ? "the threads of a CPU" : "the attention of a GPU");
    // With head flags there is no model, so --device cpu is not a remedy.
    if (!on_cpu && options.shape.num_heads > 0) return invalid_argument(error);
    return invalid_argument(fmt::format("{}, or set --device {}", error, on_cpu ? "cuda" : "cpu"));
  }
  return {};
}

void check(const bench::TuneOptions& options, Complaints& complaints) {
  complaints.add(check(options.shape));
  EngineConfig engine = options.shape.engine;
  if (const std::optional<DeviceKind> device = named_device(options.shape)) {
    complaints.add(check_device(options, *device));
    engine.device = *device == DeviceKind::kCpu ? "cpu" : "cuda";
  }
  for (const Status& error : find_conflicts(engine)) complaints.add(error);
}

Result<int> run_threads(const TuneCommand& command) {
  Progress progress("tune");
  QUIRE_ASSIGN_OR_RETURN(
      const bench::ThreadTuneResult result,
      bench::tune_threads({.engine = with_dummy_weights_of_config(command.options.shape.engine),
                           .quick = command.options.quick},
                          measurement_hooks(progress)));
  append_stdout(to_table(result));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.output, to_csv(result)));
  return kExitOk;
}

Result<int> run(const TuneCommand& command) {
  const CancelScope scope;
  const DeviceKind of_machine = cuda_status().ok() ? DeviceKind::kCuda : DeviceKind::kCpu;
  const DeviceKind device = named_device(command.options.shape).value_or(of_machine);
  QUIRE_RETURN_IF_ERROR(check_device(command.options, device));
  if (device == DeviceKind::kCpu) return run_threads(command);
  QUIRE_RETURN_IF_ERROR(refuse_cpu_cache(command.options.shape.engine));
  Progress progress("tune");
  QUIRE_ASSIGN_OR_RETURN(const bench::TuneResult result,
                         bench::tune_attention(command.options, measurement_hooks(progress)));
  append_stdout(to_table(result));
  QUIRE_RETURN_IF_ERROR(write_output_file(command.output, to_csv(result)));
  return kExitOk;
}

}  // namespace

Command bench_attention_command() {
  const auto state = std::make_shared<AttentionCommand>();
  bench::AttentionBenchOptions& options = state->options;
  Command command;
  command.name = "attention";
  command.summary = "Time a GPU's attention backends side by side";
  command.example =
      "  quire bench attention --grid strict --csv strict.csv\n"
      "  quire bench attention --num-heads 32 --num-kv-heads 8 --head-dim 128 \\\n"
      "      --num-seqs 1,64 --seq-lens 4096 --backends native,xqa";
  FlagSet& flags = command.flags;
  add_shape(command, &options.shape);
  flags.begin_group("Workload");
  flags.choice(
      "--grid", {"seed", "strict", "outlier", "prefill"}, &options.grid,
      "seed: lengths uniform in [1, N], pages drawn from 16,000; strict: all of length N, "
      "distinct pages; outlier: one of length N, the others of N / 32; prefill: prompts of "
      "N tokens");
  add_sizes(flags, "--num-seqs", &options.num_seqs, 4096, "the grid's", "Sequences per batch");
  add_sizes(flags, "--seq-lens", &options.seq_lens, 1 << 20, "the grid's",
            "Longest context per batch, or tokens of each prompt");
  add_sizes(flags, "--q-len", &options.q_lens, 64, "1", "Query tokens per sequence in decode");
  add_sizes(flags, "--cached-prefix", &options.prefix_lens, 1 << 20, "0",
            "Cached tokens before each prompt of --grid prefill", 0);
  flags.seed("--seed", &options.seed, "Seed of the lengths");
  flags.begin_group("Measurement");
  add_backends(flags, &options.backends);
  flags.file(
      "--tuning-table", &options.tuning_table,
      "Let auto select by this table, a file of quire tune; without it, by the built-in table");
  flags.number("--num-iters-warmup", &options.num_iters_warmup, {.min = 0, .max = 10'000},
               "Calls by the host before the measured ones");
  flags.number("--num-iters", &options.num_iters, {.min = 1, .max = 10'000},
               "Measured calls by the host");
  flags.number(
      "--peak", &options.peak, {.min = 0},
      "Peak rate for shares, in GB/s for decode and TFLOP/s for prefill; 0: an H200's 4800 "
      "and 989");
  flags.output_file("--json", &state->json, "Write the results to this file");
  flags.output_file("--csv", &state->csv,
                    "Write the results to this file as CSV, for tools/plot_attention.py");
  command.check = [state](Complaints& complaints) { complaints.add(check(state->options)); };
  command.run = [state] { return run(*state); };
  return command;
}

Command tune_command() {
  const auto state = std::make_shared<TuneCommand>();
  bench::TuneOptions& options = state->options;
  Command command;
  command.name = "tune";
  command.summary =
      "Measure a GPU's attention backends, for --tuning-table, or a CPU's numbers of threads, "
      "which "
      "later starts use";
  command.example =
      "  quire tune ~/models/llama --output tuned.csv\n"
      "  quire tune ~/models/llama --device cpu\n"
      "  quire tune --num-heads 32 --num-kv-heads 8 --head-dim 128 --quick";
  FlagSet& flags = command.flags;
  add_shape(command, &options.shape);
  flags.begin_group("Device");
  add_tuned_cpu_flags(flags, &options.shape.engine);
  flags.begin_group("Measurement");
  flags.toggle("--quick", &options.quick, "Measure a few points only");
  add_sizes(flags, "--q-len", &options.q_lens, 64,
            fmt::format("{}", fmt::join(options.q_lens, ",")),
            "Query tokens per sequence in decode; without 1, prompts are not measured");
  flags.output_file("--output", &state->output,
                    "Write the table, or the times of a CPU, to this file");
  command.check = [state](Complaints& complaints) { check(state->options, complaints); };
  command.run = [state] { return run(*state); };
  return command;
}

}  // namespace quire::cli
