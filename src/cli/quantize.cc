// The command quantize: flags over src/quantize, and the perplexity before and after.
#include "quantize/quantize.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text_input.h"
#include "bench/perplexity.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "hub/pull/repository_list.h"
#include "model/quantization.h"
#include "tokenizer/tokenizer.h"

namespace quire::cli {
namespace {

constexpr std::string_view kW4A16 = "w4a16";
constexpr std::array<std::pair<std::string_view, GgufTarget>, 5> kGgufTargets = {{
    {"q8_0", GgufTarget::kQ8_0},
    {"q4_0", GgufTarget::kQ4_0},
    {"q4_k_m", GgufTarget::kQ4KM},
    {"f16", GgufTarget::kF16},
    {"bf16", GgufTarget::kBf16},
}};

std::vector<std::string> target_names() {
  std::vector<std::string> names;
  for (const auto& [name, target] : kGgufTargets) names.emplace_back(name);
  names.emplace_back(kW4A16);
  return names;
}

// Returns the names in capitals, as llama.cpp and compressed-tensors write them.
FlagSet::Synonyms target_synonyms() {
  FlagSet::Synonyms synonyms;
  for (const std::string& name : target_names()) {
    std::string capitals = name;
    for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    synonyms.emplace_back(capitals, name);
  }
  return synonyms;
}

struct QuantizeCommand {
  EngineConfig engine;
  std::string to;
  std::string out;
  int group_size = 0;  // 0: the default
  std::string calibration_file;
  int calibration_tokens = 0;  // 0: the default
  bool force = false;
  bench::PerplexityOptions perplexity;
};

// Makes the options, and reads the calibration text if there is one.
Result<QuantizeOptions> options_of(const QuantizeCommand& command) {
  QuantizeOptions options;
  options.model = command.engine.model;
  options.out = command.out;
  options.force = command.force;
  options.num_threads = command.engine.num_threads;
  for (const auto& [name, target] : kGgufTargets) {
    if (command.to == name) options.target = target;
  }
  if (command.to != kW4A16) return options;
  W4A16Target target;
  if (command.group_size > 0) target.group_size = command.group_size;
  if (!command.calibration_file.empty()) {
    CalibrationText& calibration = target.calibration.emplace();
    calibration.name = input_name(command.calibration_file);
    QUIRE_ASSIGN_OR_RETURN(calibration.text, bench::load_text(command.calibration_file));
    if (command.calibration_tokens > 0) calibration.max_tokens = command.calibration_tokens;
  }
  options.target = std::move(target);
  return options;
}

// Shows a bar on a terminal, otherwise a line per tenth of the bytes, or per tenth of a
// preparation.
class QuantizeBar {
 public:
  void prepare(std::string_view what, size_t num_done, size_t num_total) {
    if (what != phase_) {
      phase_ = what;
      last_part_ = 0;
    }
    if (is_terminal_) bar_.update(num_done, num_total, [&] { return phase_; });
    if (reaches_part(num_done, num_total)) {
      print_stderr("quantize: {} {} of {}\n", what, num_done, num_total);
    }
  }
  void update(const QuantizeProgress& progress) {
    if (!phase_.empty()) {
      phase_.clear();
      last_part_ = 0;
    }
    const auto text = [&] {
      return fmt::format("{} of {}{}{}", hub::bytes_text(static_cast<int64_t>(progress.bytes_done)),
                         hub::bytes_text(static_cast<int64_t>(progress.bytes_total)),
                         progress.name.empty() ? "" : " ", progress.name);
    };
    if (is_terminal_) bar_.update(progress.tensor, progress.num_tensors, text);
    if (reaches_part(progress.bytes_done, progress.bytes_total)) {
      print_stderr("quantize: tensor {} of {}, {}\n", progress.tensor, progress.num_tensors,
                   text());
    }
  }

 private:
  // Returns whether a line is due.
  bool reaches_part(uint64_t done, uint64_t total) {
    constexpr uint64_t kNumLines = 10;
    if (is_terminal_ || total == 0) return false;
    const uint64_t part = done * kNumLines / total;
    return std::exchange(last_part_, part) != part;
  }

  Progress bar_ = Progress("quantize");
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string phase_;  // the preparation under way; empty: tensors are written
  uint64_t last_part_ = 0;
};

Result<bench::PerplexityResult> measure(const QuantizeCommand& command, const std::string& model,
                                        const std::string& text) {
  EngineConfig engine_config = command.engine;
  engine_config.model = model;
  QUIRE_ASSIGN_OR_RETURN(const auto engine, load_engine(engine_config));
  if (!engine->has_tokenizer()) {
    return invalid_argument(
        fmt::format("[quantize] --perplexity: the model has no tokenizer; expected {} beside it: "
                    "add one, or leave --perplexity out",
                    kTokenizerFileList));
  }
  QUIRE_ASSIGN_OR_RETURN(const bench::TokenizedText tokens,
                         bench::tokenize_text(*engine, text, command.perplexity));
  Progress progress("perplexity");
  return bench::evaluate_perplexity(*engine, command.perplexity, tokens,
                                    measurement_hooks(progress));
}

double bits_per_weight(int64_t bytes, int64_t num_weights) {
  return 8.0 * static_cast<double>(bytes) / static_cast<double>(num_weights);
}

Result<QuantizeResult> write(const QuantizeOptions& options) {
  QuantizeBar bar;
  return quantize(
      options,
      {.interrupted = CancelScope::interrupted,
       .on_progress = [&](const QuantizeProgress& progress) { bar.update(progress); },
       .on_preparation = [&](std::string_view what, size_t num_done,
                             size_t num_total) { bar.prepare(what, num_done, num_total); }});
}

Result<int> run(const QuantizeCommand& command) {
  // Texts are read before the scope begins, so that a signal ends the program while it waits for
  // the writer of a pipe.
  QUIRE_ASSIGN_OR_RETURN(const QuantizeOptions options, options_of(command));
  std::string text;
  if (!command.perplexity.data.empty()) {
    QUIRE_ASSIGN_OR_RETURN(text, bench::load_text(command.perplexity.data));
  }
  const CancelScope scope;
  std::optional<bench::PerplexityResult> before;
  if (!command.perplexity.data.empty()) {
    QUIRE_RETURN_IF_ERROR(check_quantize(options));
    QUIRE_ASSIGN_OR_RETURN(before, measure(command, command.engine.model, text));
  }
  QUIRE_ASSIGN_OR_RETURN(const QuantizeResult result, write(options));
  print_stdout("Output: {}\nSize: {} -> {}\nBits per weight: {:.2f} -> {:.2f}\n",
               result.out.string(), hub::bytes_text(result.source_bytes),
               hub::bytes_text(result.output_bytes),
               bits_per_weight(result.source_bytes, result.num_weights),
               bits_per_weight(result.output_bytes, result.num_weights));
  if (command.to == kW4A16) {
    print_stdout("Not quantized: embedding, output matrix and norms, which stay in their type\n");
  }
  if (!before) return kExitOk;
  QUIRE_ASSIGN_OR_RETURN(const bench::PerplexityResult after,
                         measure(command, result.out.string(), text));
  print_stdout("Perplexity: {:.4f} +/- {:.4f} -> {:.4f} +/- {:.4f}\n", before->perplexity(),
               before->perplexity_error(), after.perplexity(), after.perplexity_error());
  return kExitOk;
}

void check(const QuantizeCommand& command, Complaints& complaints) {
  if (command.to.empty()) {
    complaints.add(fmt::format("expected --to {}", fmt::join(target_names(), "|")));
  }
  if (command.out.empty()) complaints.add("expected --out PATH");
  if (command.out == "-") {
    complaints.add(
        "--out: got - (standard output), expected a path: an interrupted run continues its file");
  }
  if (command.group_size > 0 && command.to != kW4A16) {
    complaints.add("expected --group-size with --to w4a16 only");
  }
  if (command.group_size % kGroupSizeStep != 0) {
    complaints.add(fmt::format("--group-size: got {}, expected a multiple of {}, such as 128",
                               command.group_size, kGroupSizeStep));
  }
  if (!command.calibration_file.empty() && command.to != kW4A16) {
    complaints.add("expected --calibration-file with --to w4a16 only");
  }
  if (command.calibration_tokens > 0 && command.calibration_file.empty()) {
    complaints.add("expected --calibration-tokens with --calibration-file FILE only");
  }
  if (command.calibration_file == "-" && command.perplexity.data == "-") {
    complaints.add("expected standard input (-) for one of --calibration-file and --perplexity");
  }
  if (command.perplexity.max_tokens > 0 && command.perplexity.data.empty()) {
    complaints.add("expected --perplexity-tokens with --perplexity FILE only");
  }
}

}  // namespace

Command quantize_command() {
  const auto state = std::make_shared<QuantizeCommand>();
  Command command;
  command.name = "quantize";
  command.summary = "Write a quantized copy of a checkpoint, as a GGUF file or in 4-bit integers";
  command.details =
      "Targets:\n"
      "  q8_0, q4_0, q4_k_m  a GGUF file, with llama.cpp's choice of types per matrix\n"
      "  f16, bf16           a GGUF file that is not quantized\n"
      "  w4a16               a directory in compressed-tensors' pack-quantized format\n"
      "\n"
      "The same command continues an interrupted run.\n";
  command.example =
      "  quire quantize --model DIR --to q4_k_m --out model.gguf\n"
      "  quire quantize --model DIR --to w4a16 --out DIR-w4a16 --calibration-file text.txt "
      "--perplexity wiki.test.raw";
  FlagSet& flags = command.flags;
  flags.begin_group("Quantization");
  flags.directory("--model", &state->engine.model,
                  "A Hugging Face directory in BF16, F16 or F32, or the name of one in the hub's "
                  "cache (see quire pull); without it, or as embedded, the embedded model");
  flags.choice("--to", target_names(), &state->to, "Target (required)", target_synonyms());
  flags.text("--out", "PATH", &state->out,
             "The file, or with w4a16 the directory, to write (required)");
  flags.last().kind = ValueKind::kFile;
  flags.number("--group-size", &state->group_size, {.min = kGroupSizeStep, .max = 65536},
               "Weights of a row that share a scale, with w4a16");
  flags.last().default_text = std::to_string(W4A16Target().group_size);
  flags.file("--calibration-file", &state->calibration_file,
             "Choose scales per channel by the activations of this text (AWQ), with w4a16");
  flags.number("--calibration-tokens", &state->calibration_tokens,
               {.min = kMinCalibrationTokens, .max = 1 << 24},
               "Use this many tokens from the start of the calibration file");
  flags.last().default_text = std::to_string(CalibrationText().max_tokens);
  flags.toggle("--force", &state->force, "Replace --out if it exists");
  flags.number("--threads", &state->engine.num_threads, {.min = 0, .max = 1024},
               "Threads; 0: one per usable CPU");
  flags.last().field = "num_threads";
  flags.begin_group("Perplexity");
  flags.file("--perplexity", &state->perplexity.data,
             "Measure the perplexity of this text before and after, as quire eval perplexity does");
  flags.number("--perplexity-tokens", &state->perplexity.max_tokens, {.min = 2},
               "Use this many tokens from the start of the text");
  flags.last().default_text = "all";
  flags.choice("--device", {"auto", "cpu", "cuda"}, &state->engine.device,
               "Where to compute the perplexity");
  command.positional = model_argument(&state->engine);
  command.positional->excess = "the target is --to q4_k_m here, and the output --out PATH";
  command.check = [state](Complaints& complaints) { check(*state, complaints); };
  command.run = [state] { return run(*state); };
  return command;
}

}  // namespace quire::cli
