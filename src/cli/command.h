// The commands of the program: their names, flags, arguments and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/flags.h"
#include "quire/status.h"

namespace quire::cli {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;  // the run failed, or a flag does not suit the files or the machine
constexpr int kExitUsage = 2;    // the command line itself is wrong

// The arguments of a command that are not flags.
struct Positional {
  static constexpr size_t kAnyNumber = SIZE_MAX;

  std::string name;  // "MODEL"
  std::string help;
  ValueKind kind = ValueKind::kText;
  std::vector<std::string> choices = {};  // empty: any
  size_t min_words = 0;
  size_t max_words = 1;  // kAnyNumber: no limit
  // Called once per word, after the setters of all flags. Empty words are refused before.
  std::function<Status(std::string_view word)> set = {};
  std::string excess = {};  // the remedy in the error for words beyond max_words
};

struct LogOptions {
  std::string format = "text";
  std::string level = "info";
};

struct Command {
  std::string name;
  std::string summary;  // one line
  std::string example;  // shown by --help
  std::string details;  // printed above the example; complete lines, or empty
  std::vector<Command> subcommands;

  FlagSet flags;
  std::optional<Positional> positional;

  // Checks combinations of flags, after the checks of `flags`. May be empty.
  std::function<void(Complaints& complaints)> check;
  // Returns the exit code or an error. Empty if a subcommand is required.
  std::function<Result<int>()> run;
  // Has the defaults of the log flags before the parse, and their values after it.
  std::shared_ptr<LogOptions> log = std::make_shared<LogOptions>();
};

Command generate_command();
Command chat_command();
Command serve_command();
Command batch_command();
Command tokenize_command();
Command detokenize_command();
Command template_command();
Command bench_command();
Command bench_throughput_command();
Command bench_latency_command();
Command bench_serve_command();
Command bench_attention_command();
Command eval_command();
Command pull_command();
Command list_command();
Command rm_command();
Command quantize_command();
Command doctor_command();
Command tune_command();
Command completion_command();

// The root command, with all others below it.
Command root_command();

// Scripts that complete all commands, flags and choices of `root`.
std::string bash_completion(const Command& root);
std::string zsh_completion(const Command& root);
std::string fish_completion(const Command& root);

// Parses the command line, runs the command and returns the exit code.
int run_program(const Command& root, int argc, const char* const* argv);

}  // namespace quire::cli
